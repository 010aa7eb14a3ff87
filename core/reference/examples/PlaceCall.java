// java PlaceCall.java CAMPAIGN ORDER PHONE
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;

public class PlaceCall {
    // By default, this client doesn't follow redirects.
    static final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5)).build();

    static String placeCall(String campaign, String order, String phone) throws Exception {
        String url = System.getenv("CALLKEY_SERVER") + "/api/v1/campaigns/" + campaign + "/contacts/on-demand";
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
            .timeout(Duration.ofSeconds(10))
            .header("X-API-Key", System.getenv("CALLKEY_API_KEY"))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", "order-" + order)
            .POST(BodyPublishers.ofString("{\"contact\":{\"phone\":\"" + phone + "\"}}"))
            .build();
        for (int attempt = 0; attempt < 8; attempt++) {
            double pause = Math.min(8, 0.25 * (1 << attempt)) * (0.5 + Math.random() / 2);
            try {
                HttpResponse<String> answer = client.send(request, BodyHandlers.ofString());
                if (answer.statusCode() == 202) return answer.body();
                if (!List.of(429, 502, 503, 504).contains(answer.statusCode())) {
                    throw new IllegalStateException(answer.statusCode() + ": " + answer.body());
                }
                String header = answer.headers().firstValue("Retry-After").orElse("");
                long requested = header.matches("\\d{1,9}") ? Long.parseLong(header) : 0;
                if (requested > 60) throw new IllegalStateException("The server asks you to wait " + requested + " s. Run this again after that.");
                pause = Math.max(pause, requested);
            } catch (IOException noResponse) {
                // No response, or an incomplete one.
            }
            Thread.sleep((long) (pause * 1000));
        }
        throw new IllegalStateException("No response. Run it again: it sends the same request ID.");
    }

    public static void main(String[] args) throws Exception {
        try {
            System.out.print(placeCall(args[0], args[1], args[2]));
        } catch (IllegalStateException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }
}
