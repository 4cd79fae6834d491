import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/** A program that knows nothing of Abate: it calls the payment service by its own URL, with java.net.http. */
public class Pay {
    static final String URL = System.getenv("PAYMENTS_URL");

    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();

        HttpResponse<String> r = client.send(request("/charges/42").build(), BodyHandlers.ofString());
        System.out.println("get " + r.statusCode() + " " + r.body());

        r = client.send(request("/charges").header("Idempotency-Key", "order-7")
            .POST(BodyPublishers.ofString("{\"amount\": 4200}")).build(), BodyHandlers.ofString());
        System.out.println("post " + r.statusCode() + " " + (r.body().contains("true") ? "True" : "False"));

        r = client.send(request("/large")
            .POST(BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(new byte[300000]))).build(), BodyHandlers.ofString());
        System.out.println("chunked " + r.statusCode() + " " + r.body());

        r = client.send(request("/down").build(), BodyHandlers.ofString());
        String reason = r.body().replaceAll("(?s).*\"reason\":\"([a-z-]*)\".*", "$1");
        System.out.println("down " + r.statusCode() + " " + r.headers().firstValue("content-type").get() + " " + reason
            + " " + r.headers().firstValue("x-should-retry").get());

        HttpResponse<byte[]> b = client.send(request("/stream").build(), BodyHandlers.ofByteArray());
        System.out.println("stream " + b.statusCode() + " " + b.body().length);
    }

    static HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(URL + path));
    }
}
