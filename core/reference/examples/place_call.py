# place_call.py CAMPAIGN ORDER PHONE
import http.client, json, os, random, sys, time, urllib.error, urllib.request


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def place_call(campaign, order, phone, attempts=8):
    request = urllib.request.Request(
        f"{os.environ['CALLKEY_SERVER']}/api/v1/campaigns/{campaign}/contacts/on-demand",
        data=json.dumps({"contact": {"phone": phone}}).encode(),
        headers={
            "X-API-Key": os.environ["CALLKEY_API_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": f"order-{order}",
        },
    )
    for attempt in range(attempts):
        pause = min(8, 0.25 * 2**attempt) * random.uniform(0.5, 1)
        try:
            with opener.open(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 502, 503, 504):
                raise RuntimeError(f"{error.code}: {error.read().decode()}") from None
            requested = error.headers.get("Retry-After", "")
            pause = max(pause, int(requested)) if requested.isdigit() else pause
            if pause > 60:
                raise RuntimeError(f"The server asks you to wait {requested} s. Run this again after that.") from None
        except (OSError, ValueError, http.client.HTTPException):
            pass  # No response, or an incomplete one
        time.sleep(pause)
    raise RuntimeError("No response. Run it again: it sends the same request ID.")


try:
    print(json.dumps(place_call(*sys.argv[1:])))
except RuntimeError as error:
    sys.exit(str(error))
