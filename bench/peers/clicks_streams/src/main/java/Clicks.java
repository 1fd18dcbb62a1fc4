import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/** The bench `kafka` by hand in Kafka Streams: BROKERS SOURCE TARGET RECORDS STATE. */
public class Clicks {
    @JsonIgnoreProperties(ignoreUnknown = true)
    record Click(
            long id, String user, String page, String action, String country,
            double price, int quantity, String at) {
        boolean selected() {
            return (action.equals("cart") || action.equals("purchase")) && price >= 20;
        }

        Order order() {
            Instant time = Instant.parse(at);
            return new Order(
                    id, user, country, action, time.toString(), price * quantity,
                    page.split("/", 3)[1], time.truncatedTo(ChronoUnit.HOURS).toString());
        }
    }

    record Order(
            long id, String user, String country, String action, String at,
            double total, String section, String hour) {}

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectReader READER = JSON.readerFor(Click.class);
    private static final ObjectWriter WRITER = JSON.writerFor(Order.class);

    public static void main(String[] given) throws InterruptedException {
        AtomicLong missing = new AtomicLong(Long.parseLong(given[3]));
        CountDownLatch ended = new CountDownLatch(1);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(given[1], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .peek((key, value) -> {
                    if (missing.decrementAndGet() == 0) {
                        ended.countDown();
                    }
                })
                .mapValues(Clicks::decode)
                .filter((key, click) -> click.selected())
                .map((key, click) -> KeyValue.pair(
                        click.user().getBytes(StandardCharsets.UTF_8), encode(click.order())))
                .to(given[2], Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        Properties settings = new Properties();
        settings.putAll(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, given[2],
                StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0],
                StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2,
                StreamsConfig.STATE_DIR_CONFIG, given[4],
                "auto.offset.reset", "earliest"));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        streams.start();
        ended.await();
        streams.close();
    }

    private static Click decode(byte[] value) {
        try {
            return READER.readValue(value);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static byte[] encode(Order order) {
        try {
            return WRITER.writeValueAsBytes(order);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
