import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A shop's checkout that knows nothing of Abate. It plays the payment service too, on the port that
 * examples/policy.yaml has, so that nothing else has to run:
 *
 * <pre>go run ./cmd/abate run -c examples/policy.yaml -- java examples/run/App.java</pre>
 */
public class App {
    static final AtomicInteger asked = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        String base = System.getenv().getOrDefault("ABATE_URL_PAYMENT_SERVICE", "http://127.0.0.1:8081");
        try {
            HttpServer payments = HttpServer.create(new InetSocketAddress("127.0.0.1", 8081), 0);
            payments.createContext("/", App::answer);
            payments.setExecutor(Executors.newCachedThreadPool());
            payments.start();
        } catch (IOException taken) {
            // somebody serves there already
        }
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < 4; i++) {
            say("base URL:         ", client, base + "/charges/" + i);
        }
        for (int i = 0; i < 4; i++) {
            say("HttpClient:       ", client, "http://127.0.0.1:8081/asked/" + i);
        }
        for (int i = 0; i < 4; i++) {
            HttpURLConnection c =
                    (HttpURLConnection) URI.create("http://127.0.0.1:8081/got/" + i).toURL().openConnection();
            System.out.println("HttpURLConnection: " + c.getResponseCode());
        }
        System.out.println(asked.get() + " requests reached the payment service");
        System.exit(0);
    }

    static void say(String how, HttpClient client, String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
        HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(how + " " + answer.statusCode() + " " + answer.body().trim());
    }

    /** The payment service stumbles: every third answer is a 503. */
    static void answer(HttpExchange x) throws IOException {
        byte[] text = (x.getRequestMethod() + " " + x.getRequestURI() + "\n").getBytes();
        x.sendResponseHeaders(asked.incrementAndGet() % 3 == 0 ? 503 : 200, text.length);
        x.getResponseBody().write(text);
        x.close();
    }
}
