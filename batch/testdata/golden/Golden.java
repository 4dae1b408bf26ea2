import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/** Writes batches with the Java client's own builders, and what the same client reads from them. See README.md. */
public final class Golden {
    static final long BASE = 1000, TIME = 1_700_000_000_000L, APPEND_TIME = TIME + 86_400_000L, HORIZON = TIME + 1234;

    record Item(long offset, SimpleRecord record) { }

    static Path out;
    static final List<String> index = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        out = Path.of(args[0]);
        for (CompressionType codec : CompressionType.values()) {
            for (byte magic = 0; magic <= 2; magic++) {
                if (magic == 2 || codec != CompressionType.ZSTD) {
                    data(magic, codec);
                }
            }
        }
        save("v2-none-commit", MemoryRecords.withEndTransactionMarker(BASE, TIME, 7, 55, (short) 3, new EndTransactionMarker(ControlRecordType.COMMIT, 9)).buffer());
        save("v2-none-abort", MemoryRecords.withEndTransactionMarker(BASE, TIME, 7, 55, (short) 3, new EndTransactionMarker(ControlRecordType.ABORT, 9)).buffer());
        save("v2-none-leaderchange", MemoryRecords.withLeaderChangeMessage(BASE, TIME, 7, ByteBuffer.allocate(512), new LeaderChangeMessage().setLeaderId(1)).buffer());
        ByteBuffer empty = ByteBuffer.allocate(RecordBatch.MAGIC_VALUE_V2 + 200);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 55, (short) 3, 17, BASE, BASE + 9, 7, TimestampType.CREATE_TIME, TIME, false, false);
        empty.flip();
        save("v2-none-empty", empty);
        Files.writeString(out.resolve("golden.json"), "[\n" + String.join(",\n", index) + "\n]\n");
    }

    static void data(byte magic, CompressionType codec) throws Exception {
        String name = "v" + magic + "-" + codec.name + "-";
        save(name + "plain", build(magic, codec, TimestampType.CREATE_TIME, false, -1, plain()));
        save(name + "nulls", build(magic, codec, TimestampType.CREATE_TIME, false, -1, nulls()));
        if (codec != CompressionType.NONE) {
            save(name + "many", build(magic, codec, TimestampType.CREATE_TIME, false, -1, many()));
        }
        if (magic >= 1) {
            save(name + "appendtime", build(magic, codec, TimestampType.LOG_APPEND_TIME, false, -1, plain()));
        }
        if (magic == 2) {
            save(name + "headers", build(magic, codec, TimestampType.CREATE_TIME, false, -1, headers()));
            save(name + "transactional", build(magic, codec, TimestampType.CREATE_TIME, true, -1, plain()));
            save(name + "thinned", build(magic, codec, TimestampType.CREATE_TIME, false, -1, thinned()));
            save(name + "horizon", build(magic, codec, TimestampType.CREATE_TIME, false, HORIZON, thinned()));
        }
    }

    static ByteBuffer build(byte magic, CompressionType codec, TimestampType type, boolean transactional, long horizon, List<Item> items) {
        ByteBufferOutputStream stream = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(stream, magic, Compression.of(codec).build(), type, BASE,
            type == TimestampType.LOG_APPEND_TIME ? APPEND_TIME : RecordBatch.NO_TIMESTAMP,
            transactional ? 55 : -1, transactional ? (short) 3 : -1, transactional ? 17 : -1, transactional, false, 7, Integer.MAX_VALUE, horizon);
        for (Item item : items) {
            builder.appendWithOffset(item.offset, item.record);
        }
        return builder.build().buffer();
    }

    static List<Item> plain() {
        List<Item> items = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            items.add(new Item(BASE + i, new SimpleRecord(TIME + 100 - 70 * i, ("key-" + i).getBytes(), ("value number " + i).getBytes())));
        }
        return items;
    }

    static List<Item> nulls() {
        byte[] none = new byte[0];
        return List.of(
            new Item(BASE, new SimpleRecord(TIME, null, "null key".getBytes())),
            new Item(BASE + 1, new SimpleRecord(TIME, "null value".getBytes(), null)),
            new Item(BASE + 2, new SimpleRecord(TIME, (byte[]) null, null)),
            new Item(BASE + 3, new SimpleRecord(TIME, none, "empty key".getBytes())),
            new Item(BASE + 4, new SimpleRecord(TIME, "empty value".getBytes(), none)),
            new Item(BASE + 5, new SimpleRecord(TIME, none, none)));
    }

    /** More than a block of any codec holds. */
    static List<Item> many() {
        List<Item> items = new ArrayList<>();
        for (int i = 0; i < 700; i++) {
            String value = "{\"number\":" + i + ",\"square\":" + (long) i * i + ",\"text\":\"" + "so many words ".repeat(1 + i % 37) + "\"}";
            items.add(new Item(BASE + i, new SimpleRecord(TIME + i * 37L % 5000, ("key-" + i).getBytes(), value.getBytes())));
        }
        return items;
    }

    static List<Item> headers() {
        Header[] several = {
            new RecordHeader("twice", "one".getBytes()), new RecordHeader("twice", "two".getBytes()), new RecordHeader("null", null),
            new RecordHeader("empty", new byte[0]), new RecordHeader("", "no name".getBytes()), new RecordHeader("größe", new byte[] {0, 1, (byte) 0xff}),
        };
        Header[] lots = new Header[100];
        for (int i = 0; i < lots.length; i++) {
            lots[i] = new RecordHeader("h" + i, ("v" + i).getBytes());
        }
        return List.of(
            new Item(BASE, new SimpleRecord(TIME, "a".getBytes(), "several".getBytes(), several)),
            new Item(BASE + 1, new SimpleRecord(TIME, "b".getBytes(), "none".getBytes())),
            new Item(BASE + 2, new SimpleRecord(TIME, "c".getBytes(), "lots".getBytes(), lots)));
    }

    static List<Item> thinned() {
        List<Item> items = new ArrayList<>();
        for (int delta : new int[] {0, 4, 9}) {
            items.add(new Item(BASE + delta, new SimpleRecord(TIME + delta, ("key-" + delta).getBytes(), ("value " + delta).getBytes())));
        }
        return items;
    }

    static void save(String name, ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        Files.write(out.resolve(name + ".bin"), bytes);
        StringBuilder batches = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            List<String> list = new ArrayList<>();
            StringBuilder all = new StringBuilder();
            for (Record r : batch) {
                String text = text(r);
                list.add("      " + text);
                all.append(text).append('\n');
            }
            batches.append(batches.length() == 0 ? "" : ",\n").append("    {\"magic\":").append(batch.magic()).append(",\"lastOffset\":").append(batch.lastOffset())
                .append(",\"maxTimestamp\":").append(batch.maxTimestamp()).append(",\"codec\":\"").append(batch.compressionType().name)
                .append("\",\"appendTime\":").append(batch.timestampType() == TimestampType.LOG_APPEND_TIME).append(",\"transactional\":").append(batch.isTransactional())
                .append(",\"control\":").append(batch.isControlBatch()).append(",\"deleteHorizon\":").append(batch.deleteHorizonMs().isPresent())
                .append(",\"producerId\":").append(batch.producerId()).append(",\"producerEpoch\":").append(batch.producerEpoch())
                .append(",\"baseSequence\":").append(batch.baseSequence()).append(",\"leaderEpoch\":").append(batch.partitionLeaderEpoch())
                .append(",\"crc\":").append(batch.checksum()).append(",\"count\":").append(list.size())
                .append(",\"digest\":\"").append(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(all.toString().getBytes()))).append("\"");
            if (list.size() <= 10) {
                batches.append(",\"records\":[\n").append(String.join(",\n", list)).append("]");
            }
            batches.append("}");
        }
        index.add("  {\"name\":\"" + name + "\",\"batches\":[\n" + batches + "]}");
    }

    static String text(Record r) {
        List<String> headers = new ArrayList<>();
        for (Header h : r.headers()) {
            headers.add("[" + base64(h.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)) + "," + base64(h.value()) + "]");
        }
        return "{\"offset\":" + r.offset() + ",\"timestamp\":" + r.timestamp() + ",\"key\":" + base64(bytes(r.key())) + ",\"value\":" + base64(bytes(r.value()))
            + ",\"headers\":[" + String.join(",", headers) + "]}";
    }

    static byte[] bytes(ByteBuffer b) {
        if (b == null) {
            return null;
        }
        byte[] bytes = new byte[b.remaining()];
        b.get(bytes);
        return bytes;
    }

    static String base64(byte[] b) {
        return b == null ? "null" : "\"" + Base64.getEncoder().encodeToString(b) + "\"";
    }
}
