package abate;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.listener.MessageListenerContainer;
import org.springframework.kafka.retrytopic.RetryTopicConfigurationSupport;
import org.springframework.retry.annotation.Backoff;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/**
 * An application as Spring's documentation shows it: a listener with retry topics. Settings are system properties. It prints a line of JSON for
 * its topics and groups, for being ready, and for every delivery, and ends when its input does.
 *
 * <p>bootstrap, topic, group, attempts, delay, multiplier, maxDelay (ms): as in the annotation. fail: key=n,... fails the deliveries of a key, or of
 * all keys for *, up to attempt n. only: topics to listen to, all if empty. mode: "retry" for retry topics, "recoverer" for a plain dead-letter topic.
 */
public class Main {
    static final ObjectMapper json = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var app = new AnnotationConfigApplicationContext();
        app.register(Basics.class, mode("retry") ? Retrying.class : Recovering.class);
        app.refresh();
        var containers = app.getBean(KafkaListenerEndpointRegistry.class).getAllListenerContainers();
        print("event", "chain", "topics", containers.stream().collect(Collectors.toMap(Main::topic, c -> String.valueOf(c.getGroupId()))));
        var only = Set.of(property("only", "").split(","));
        for (var c : containers) {
            if (!only.contains("") && !only.contains(topic(c))) {
                c.stop();
            }
        }
        for (var c : containers) {
            while (c.isRunning() && (c.getAssignedPartitions() == null || c.getAssignedPartitions().isEmpty())) {
                Thread.sleep(10);
            }
        }
        print("event", "ready");
    }

    /** Ends the program with its input, at once: closing everything takes seconds. */
    static final Thread input = new Thread(() -> {
        try {
            while (System.in.read() >= 0) {}
        } catch (java.io.IOException e) {
            // this is an end, too
        }
        Runtime.getRuntime().halt(0);
    });

    static {
        input.start();
    }

    static boolean mode(String name) {
        return property("mode", "retry").equals(name);
    }

    static String property(String name, String otherwise) {
        return System.getProperty(name, otherwise);
    }

    static String topic(MessageListenerContainer c) {
        return c.getContainerProperties().getTopics()[0];
    }

    /** Prints a line of names and values. */
    static synchronized void print(Object... pairs) {
        var line = new LinkedHashMap<String, Object>();
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        try {
            System.out.println(json.writeValueAsString(line));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static void tell(String event, ConsumerRecord<byte[], byte[]> r) {
        var headers = new ArrayList<Object>();
        for (Header h : r.headers()) {
            var header = new LinkedHashMap<String, Object>();
            header.put("key", h.key());
            header.put("value", h.value());
            headers.add(header);
        }
        print("event", event, "at", System.currentTimeMillis(), "topic", r.topic(), "partition", r.partition(), "offset", r.offset(),
            "timestamp", r.timestamp(), "key", r.key(), "value", r.value(), "headers", headers);
    }

    /** The number of this delivery: 1 for a record without the header. */
    static int attempt(ConsumerRecord<byte[], byte[]> r) {
        Header h = r.headers().lastHeader("retry_topic-attempts");
        return h == null ? 1 : new java.math.BigInteger(h.value()).intValue();
    }

    static void handle(ConsumerRecord<byte[], byte[]> r) {
        tell("delivery", r);
        String key = r.key() == null ? "" : new String(r.key());
        for (String rule : property("fail", "").split(",")) {
            var parts = rule.split("=");
            if (parts.length == 2 && (parts[0].equals(key) || parts[0].equals("*")) && attempt(r) <= Integer.parseInt(parts[1])) {
                throw new IllegalStateException("no stock for " + key);
            }
        }
    }

    @Configuration
    @EnableKafka
    static class Basics {
        @Value("${bootstrap}")
        String bootstrap;

        @Bean
        KafkaTemplate<byte[], byte[]> kafkaTemplate() {
            return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap),
                new ByteArraySerializer(), new ByteArraySerializer()));
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory(KafkaTemplate<byte[], byte[]> template) {
            var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 300, // hears of a new member soon
                // Two ways to share partitions in one group are one too many: Abate's is cooperative.
                ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, CooperativeStickyAssignor.class.getName()),
                new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            if (mode("recoverer")) {
                factory.setCommonErrorHandler(new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), new FixedBackOff(0, 1)));
            }
            return factory;
        }

        @Bean
        TaskScheduler taskScheduler() {
            return new ThreadPoolTaskScheduler();
        }
    }

    @Configuration
    static class Retrying extends RetryTopicConfigurationSupport {
        @RetryableTopic(attempts = "${attempts}", autoCreateTopics = "false", backoff = @Backoff(
            delayExpression = "${delay}", multiplierExpression = "${multiplier}", maxDelayExpression = "${maxDelay}"))
        @KafkaListener(id = "main", topics = "${topic}", groupId = "${group}")
        void listen(ConsumerRecord<byte[], byte[]> r) {
            handle(r);
        }

        @DltHandler
        void dead(ConsumerRecord<byte[], byte[]> r) {
            tell("dead", r);
        }
    }

    @Configuration
    static class Recovering {
        @KafkaListener(id = "main", topics = "${topic}", groupId = "${group}")
        void listen(ConsumerRecord<byte[], byte[]> r) {
            handle(r);
        }
    }
}
