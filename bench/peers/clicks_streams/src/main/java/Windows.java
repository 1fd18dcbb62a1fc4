import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * The bench `windows` by hand in Kafka Streams: BROKERS SOURCE TARGET RECORDS STATE.
 *
 * <p>The source is partitioned by user, so the stream is not repartitioned.
 */
public class Windows {
    @JsonIgnoreProperties(ignoreUnknown = true)
    record Click(double price, String at) {}

    record Total(long clicks, double price) {
        Total add(Click click) {
            return new Total(clicks + 1, price + click.price());
        }
    }

    record Result(long start, String key, long clicks, double price) {
        static Result of(Windowed<String> window, Total total) {
            long start = window.window().startTime().getEpochSecond();
            return new Result(start, window.key(), total.clicks(), total.price());
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectReader READER = JSON.readerFor(Click.class);
    private static final ObjectWriter WRITER = JSON.writerFor(Result.class);
    private static final Duration WIDTH = Duration.ofSeconds(10);
    private static final Duration DELAY = Duration.ofSeconds(10);

    public static void main(String[] given) throws InterruptedException {
        AtomicLong missing = new AtomicLong(Long.parseLong(given[3]));
        CountDownLatch ended = new CountDownLatch(1);
        StreamsBuilder builder = new StreamsBuilder();
        Serde<Click> clicks = Serdes.serdeFrom(Windows::unused, Windows::decode);
        Serde<Total> totals = Serdes.serdeFrom(Windows::pack, Windows::unpack);
        builder.stream(
                        given[1],
                        Consumed.with(Serdes.String(), clicks).withTimestampExtractor(Windows::time))
                .peek((key, value) -> {
                    if (missing.decrementAndGet() == 0) {
                        ended.countDown();
                    }
                })
                .groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WIDTH, DELAY))
                .aggregate(
                        () -> new Total(0, 0),
                        (user, click, total) -> total.add(click),
                        Materialized.with(Serdes.String(), totals))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
                .toStream()
                .map((window, total) ->
                        KeyValue.pair(window.key(), encode(Result.of(window, total))))
                .to(given[2], Produced.with(Serdes.String(), Serdes.ByteArray()));
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

    private static long time(ConsumerRecord<Object, Object> record, long streamTime) {
        return Instant.parse(((Click) record.value()).at()).toEpochMilli();
    }

    private static byte[] unused(String topic, Click click) {
        throw new UnsupportedOperationException("clicks are only read");
    }

    private static Click decode(String topic, byte[] value) {
        try {
            return READER.readValue(value);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static byte[] encode(Result result) {
        try {
            return WRITER.writeValueAsBytes(result);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static byte[] pack(String topic, Total total) {
        return total == null
                ? null
                : ByteBuffer.allocate(16).putLong(total.clicks()).putDouble(total.price()).array();
    }

    private static Total unpack(String topic, byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Total(buffer.getLong(), buffer.getDouble());
    }
}
