import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.AbstractCursor;
import de.bwaldvogel.mongo.backend.Cursor;
import de.bwaldvogel.mongo.backend.aggregation.Aggregation;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.BsonTimestamp;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.Oplog;
import io.netty.channel.Channel;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * mongo-java-server as a replica set of one member, with an oplog that has what its own lacks: the
 * position after a batch, the times of operations, the documents before and after a change, the
 * invalidation of streams, and an end.
 *
 * <p>Documents of one insert have one time, as those of a transaction. A batch of a stream waits for
 * a change until `maxTimeMS`. The command `truncateOplog` removes all entries from the oplog, and
 * `noop` adds one, as a server without writes does.
 */
public class ReplicaSet extends MemoryBackend implements Oplog {
    private static final String EVENT = "04", BEFORE_EVENTS = "00";
    private final int port;
    private final TreeMap<String, Document> events = new TreeMap<>();
    private final Map<String, Map<Object, Document>> images = new HashMap<>();
    private final Map<Long, Stream> streams = new HashMap<>();
    private final Map<String, Document> imageOptions = new HashMap<>();
    private long time;
    private String first = "";

    ReplicaSet(int port) {
        this.port = port;
        tick();
    }

    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        MongoServer server = new MongoServer(new ReplicaSet(port));
        server.enableOplog();
        server.bind("127.0.0.1", port);
    }

    @Override
    protected Oplog createOplog() {
        return this;
    }

    @Override
    public synchronized Document handleCommand(Channel channel, String database, String command, Document query) {
        if (command.equals("truncateOplog") || command.equals("noop")) {
            tick();
            if (command.equals("truncateOplog")) {
                first = token(time, 0);
                events.clear();
            }
            notifyAll();
            return new Document("ok", 1);
        }
        if (command.equals("getMore") && query.get("maxTimeMS") instanceof Number milliseconds) {
            await(streams.get(((Number) query.get(command)).longValue()), milliseconds.longValue());
        }
        boolean isHello = command.equalsIgnoreCase("hello") || command.equalsIgnoreCase("ismaster");
        Document answer = super.handleCommand(channel, database, isHello ? "ismaster" : command, query);
        answer.put("operationTime", new BsonTimestamp(time));
        if (isHello) {
            String address = "127.0.0.1:" + port;
            answer.put("isWritablePrimary", true);
            answer.put("maxWireVersion", 13);
            answer.put("setName", "rs0");
            answer.put("hosts", List.of(address));
            answer.put("me", address);
            answer.put("primary", address);
        } else if (command.equals("create")) {
            imageOptions.put(database + "." + query.get("create"), (Document) query.get("changeStreamPreAndPostImages"));
        } else if (command.equals("listCollections")) {
            addOptions(database, answer);
        } else if (answer.get("cursor") instanceof Document cursor) {
            if (command.equals("aggregate") && Integer.valueOf(0).equals(((Document) query.get("cursor")).get("batchSize"))) {
                postpone(cursor);
            }
            long id = ((Number) cursor.get("id")).longValue();
            Stream stream = streams.get(command.equals("getMore") ? ((Number) query.get(command)).longValue() : id);
            if (stream != null) {
                cursor.put("postBatchResumeToken", new Document("_data", stream.position()));
            }
        }
        return answer;
    }

    /** Waits for a change of a stream. The other connections have threads of their own. */
    private void await(Stream stream, long milliseconds) {
        long end = System.nanoTime() + milliseconds * 1_000_000;
        try {
            for (long rest = milliseconds; rest > 0 && stream != null && !stream.hasNext(); rest = (end - System.nanoTime()) / 1_000_000) {
                wait(rest);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns the documents of an aggregation with the next batch, as its client asks for. */
    private void postpone(Document cursor) {
        List<Document> documents = new ArrayList<>();
        ((Iterable<?>) cursor.get("firstBatch")).forEach(each -> documents.add((Document) each));
        if (!documents.isEmpty()) {
            Cursor rest = new Rest(documents);
            getCursorRegistry().add(rest);
            cursor.put("firstBatch", List.of());
            cursor.put("id", rest.getId());
        }
    }

    private void addOptions(String database, Document answer) {
        for (Object each : (Iterable<?>) ((Document) answer.get("cursor")).get("firstBatch")) {
            Document collection = (Document) each;
            Document option = imageOptions.get(database + "." + collection.get("name"));
            if (option != null) {
                collection.put("options", new Document("changeStreamPreAndPostImages", option));
            }
        }
    }

    private void tick() {
        time = Math.max(time + 1, Instant.now().getEpochSecond() << 32 | 1);
    }

    private static String token(long time, int number) {
        return String.format("82%016X%08X%s", time, number, number == 0 ? BEFORE_EVENTS : EVENT);
    }

    private Map<Object, Document> imagesOf(String namespace) {
        return images.computeIfAbsent(namespace, each -> new HashMap<>());
    }

    private void add(String namespace, int number, String type, Object id, Document after, Document before) {
        Document event = new Document("operationType", type)
            .append("clusterTime", new BsonTimestamp(time))
            .append("wallTime", Instant.now())
            .append("ns", new Document("db", namespace.split("\\.", 2)[0]).append("coll", namespace.split("\\.", 2)[1]));
        if (!type.equals("drop") && !type.equals("invalidate")) {
            event.append("documentKey", new Document("_id", id)).append("after", after).append("before", before);
        }
        events.put(token(time, number), event);
        notifyAll();
    }

    @Override
    public synchronized void handleInsert(String namespace, List<Document> documents) {
        tick();
        int number = 0;
        for (Document document : documents) {
            Document copy = document.cloneDeeply();
            imagesOf(namespace).put(copy.get("_id"), copy);
            add(namespace, ++number, "insert", copy.get("_id"), copy, null);
        }
    }

    @Override
    public synchronized void handleUpdate(String namespace, Document selector, Document query, List<Object> ids) {
        String[] names = namespace.split("\\.", 2);
        boolean isUpdate = query.keySet().stream().anyMatch(name -> name.startsWith("$"));
        for (Object id : ids) {
            tick();
            Document after = resolveDatabase(names[0]).resolveCollection(names[1], true)
                .handleQueryAsStream(new Document("_id", id)).findFirst().orElseThrow().cloneDeeply();
            Document before = imagesOf(namespace).put(id, after);
            add(namespace, 1, isUpdate ? "update" : "replace", id, after, before);
        }
    }

    @Override
    public synchronized void handleDelete(String namespace, Document query, List<Object> ids) {
        for (Object id : ids) {
            tick();
            add(namespace, 1, "delete", id, null, imagesOf(namespace).remove(id));
        }
    }

    @Override
    public synchronized void handleDropCollection(String namespace) {
        tick();
        images.remove(namespace);
        add(namespace, 1, "drop", null, null, null);
        add(namespace, 2, "invalidate", null, null, null);
    }

    @Override
    public synchronized Cursor createCursor(Document options, String namespace, Aggregation aggregation) {
        Document after = (Document) options.getOrDefault("resumeAfter", options.get("startAfter"));
        String position = after == null ? token(time + 1, 0) : (String) after.get("_data");
        if (options.get("startAtOperationTime") instanceof BsonTimestamp start) {
            position = token(start.getValue(), 0);
        }
        if (position.compareTo(first) < 0) {
            throw new MongoServerError(286, "ChangeStreamHistoryLost",
                "Resume of change stream was not possible, as the resume point may no longer be in the oplog.");
        }
        Stream stream = new Stream(streams.size() + 1_000_000L, namespace, options, position);
        streams.put(stream.getId(), stream);
        getCursorRegistry().add(stream);
        return stream;
    }

    private class Rest extends AbstractCursor {
        private final List<Document> documents;

        Rest(List<Document> documents) {
            super(getCursorRegistry().generateCursorId());
            this.documents = documents;
        }

        @Override
        public boolean isEmpty() {
            return true;
        }

        @Override
        public List<Document> takeDocuments(int limit) {
            return documents;
        }
    }

    private class Stream extends AbstractCursor {
        private final String namespace;
        private final Document options;
        private String position;
        private boolean isInvalid;

        Stream(long id, String namespace, Document options, String position) {
            super(id);
            this.namespace = namespace;
            this.options = options;
            this.position = position;
        }

        @Override
        public boolean isEmpty() {
            return isInvalid;
        }

        String position() {
            return position;
        }

        /** Returns whether a batch need not wait: it is an error, the end, or has a change. */
        boolean hasNext() {
            return isInvalid || position.compareTo(first) < 0
                || events.tailMap(position, false).values().stream().anyMatch(this::contains);
        }

        private boolean contains(Document event) {
            Document names = (Document) event.get("ns");
            return namespace.equals(names.get("db") + "." + names.get("coll"));
        }

        @Override
        public List<Document> takeDocuments(int limit) {
            synchronized (ReplicaSet.this) {
                if (position.compareTo(first) < 0) {
                    throw new MongoServerError(136, "CappedPositionLost", "CollectionScan died due to position in capped collection being deleted.");
                }
                List<Document> taken = new ArrayList<>();
                for (Map.Entry<String, Document> each : events.tailMap(position, false).entrySet()) {
                    if (isInvalid || limit > 0 && taken.size() == limit) {
                        return taken;
                    }
                    Document event = each.getValue();
                    if (contains(event)) {
                        position = each.getKey();
                        taken.add(answer(position, event));
                        isInvalid = event.get("operationType").equals("invalidate");
                    }
                }
                String reached = token(time, 0);
                position = position.compareTo(reached) > 0 ? position : reached;
                return taken;
            }
        }

        private Document answer(String token, Document event) {
            Document answer = event.clone();
            Document after = (Document) answer.remove("after");
            Document before = (Document) answer.remove("before");
            String type = (String) event.get("operationType");
            String wanted = (String) options.getOrDefault("fullDocument", "default");
            boolean hasImages = imageOptions.get(namespace) != null;
            if (type.equals("update")) {
                Document current = imagesOf(namespace).get(((Document) event.get("documentKey")).get("_id"));
                Document image = hasImages ? after : null;
                after = wanted.equals("updateLookup") ? current : wanted.equals("whenAvailable") ? image : null;
            }
            if (after != null || type.equals("update") && !wanted.equals("default")) {
                answer.put("fullDocument", after);
            }
            if (before != null && hasImages && "whenAvailable".equals(options.get("fullDocumentBeforeChange"))) {
                answer.put("fullDocumentBeforeChange", before);
            }
            return new Document("_id", new Document("_data", token)).append("operationType", answer.remove("operationType")).appendAll(answer);
        }
    }
}
