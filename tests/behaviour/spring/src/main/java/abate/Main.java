package abate;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.resilience4j.circuitbreaker.CircuitBreakerRegistry;
import io.github.resilience4j.circuitbreaker.annotation.CircuitBreaker;
import io.github.resilience4j.retry.annotation.Retry;
import io.github.resilience4j.timelimiter.TimeLimiterRegistry;
import io.github.resilience4j.timelimiter.annotation.TimeLimiter;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.stereotype.Component;
import org.springframework.web.client.HttpStatusCodeException;
import org.springframework.web.client.RestClient;

/**
 * A server that passes a request for /NAME/METHOD/COMMAND on to a back end, under the aspects that have an instance NAME,
 * and answers how often it was tried. A request that ends in "refused" goes where nobody listens.
 */
@SpringBootApplication
public class Main {
    public static void main(String[] args) throws Exception {
        SpringApplication application = new SpringApplication(Main.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        Calls calls = application.run(args).getBean(Calls.class);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.getInteger("port")), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> answer(exchange, calls));
        server.start();
        while (System.in.read() >= 0) {
            // its end ends the application
        }
        System.exit(0);
    }

    private static void answer(HttpExchange exchange, Calls calls) throws IOException {
        String path = exchange.getRequestURI().getPath();
        int status = 200;
        if (!path.equals("/")) {
            status = calls.choose(path, exchange.getRequestMethod());
            exchange.getResponseHeaders().set("X-Tries", String.valueOf(calls.tries(path)));
        }
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }
}

/** Chooses the aspects that a call passes. */
@Component
class Calls {
    private final Client client;
    private final CircuitBreakerRegistry breakers;
    private final TimeLimiterRegistry limiters;

    Calls(Client client, CircuitBreakerRegistry breakers, TimeLimiterRegistry limiters) {
        this.client = client;
        this.breakers = breakers;
        this.limiters = limiters;
    }

    int tries(String path) {
        return client.tries(path);
    }

    int choose(String path, String method) {
        String name = path.split("/")[1];
        try {
            boolean breaks = breakers.find(name).isPresent();
            if (limiters.find(name).isPresent()) {
                (breaks ? client.limitedAndBroken(name, method, path) : client.limited(name, method, path)).join();
            } else if (breaks) {
                client.broken(name, method, path);
            } else {
                client.retried(name, method, path);
            }
            return 200;
        } catch (Exception e) {
            Throwable cause = e instanceof CompletionException ? e.getCause() : e;
            return cause instanceof HttpStatusCodeException status ? status.getStatusCode().value() : 599;
        }
    }
}

/** Calls the back end. */
@Component
class Client {
    private final Map<String, AtomicInteger> made = new ConcurrentHashMap<>();
    private final RestClient rest = RestClient.builder().requestFactory(new SimpleClientHttpRequestFactory()).build();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    public int tries(String path) {
        AtomicInteger tries = made.get(path);
        return tries == null ? 0 : tries.get();
    }

    private String call(String method, String path) {
        made.computeIfAbsent(path, p -> new AtomicInteger()).incrementAndGet();
        String to = System.getProperty(path.endsWith("/refused") ? "dead" : "backend");
        return rest.method(HttpMethod.valueOf(method)).uri("http://" + to + path).retrieve().body(String.class);
    }

    private CompletableFuture<String> later(String method, String path) {
        return CompletableFuture.supplyAsync(() -> call(method, path), threads);
    }

    @Retry(name = "#root.args[0]")
    public String retried(String name, String method, String path) {
        return call(method, path);
    }

    @Retry(name = "#root.args[0]")
    @CircuitBreaker(name = "#root.args[0]")
    public String broken(String name, String method, String path) {
        return call(method, path);
    }

    @Retry(name = "#root.args[0]")
    @TimeLimiter(name = "#root.args[0]")
    public CompletableFuture<String> limited(String name, String method, String path) {
        return later(method, path);
    }

    @Retry(name = "#root.args[0]")
    @CircuitBreaker(name = "#root.args[0]")
    @TimeLimiter(name = "#root.args[0]")
    public CompletableFuture<String> limitedAndBroken(String name, String method, String path) {
        return later(method, path);
    }
}
