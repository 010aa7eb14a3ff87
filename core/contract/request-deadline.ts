import { type Dispatcher, errors } from 'undici';

/**
 * Ends each request whose response isn't complete in time. undici's own timeouts start again with every byte and every 1xx response, so a
 * server that sends a byte now and then could keep a request open forever. The time that a request waits for a connection doesn't count.
 */
export function withDeadline(milliseconds: number): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    let timer: NodeJS.Timeout | undefined;
    let hasStarted = false;
    return dispatch(options, {
      onRequestStart(controller, context) {
        clearTimeout(timer);
        timer = setTimeout(
          () => controller.abort(hasStarted ? new errors.BodyTimeoutError() : new errors.HeadersTimeoutError()),
          milliseconds,
        );
        handler.onRequestStart?.(controller, context);
      },
      onRequestUpgrade(...response) {
        clearTimeout(timer);
        handler.onRequestUpgrade?.(...response);
      },
      onResponseStart(...response) {
        hasStarted = true;
        handler.onResponseStart?.(...response);
      },
      onResponseData: (...chunk) => handler.onResponseData?.(...chunk),
      onResponseEnd(...end) {
        clearTimeout(timer);
        handler.onResponseEnd?.(...end);
      },
      onResponseError(...error) {
        clearTimeout(timer);
        handler.onResponseError?.(...error);
      },
    });
  };
}
