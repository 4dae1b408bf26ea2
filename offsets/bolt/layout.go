package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// layoutVersion is stored under meta/layout. It changes when buckets, keys or the seal change; the JSON inside has versions of its own.
const layoutVersion = 1

// sealSize is the checksum before each value. bbolt checks its meta pages only; without it a flipped digit in an offset would be believed.
const sealSize = crc32.Size

func metaBucket() []byte        { return []byte("meta") }
func routeBucket() []byte       { return []byte("route") }
func checkpointsBucket() []byte { return []byte("checkpoints") }
func eventsBucket() []byte      { return []byte("events") }
func layoutKey() []byte         { return []byte("layout") }
func stateKey() []byte          { return []byte("state") }
func countKey() []byte          { return []byte("count") }

// partitionKey is the topic, a zero byte (which no topic name has) and the big-endian number, so that keys sort as partitions do.
func partitionKey(p route.Partition) []byte {
	key := append([]byte(p.Topic), 0)
	return binary.BigEndian.AppendUint32(key, uint32(p.Partition))
}

func parsePartitionKey(key []byte) (route.Partition, error) {
	topic, number, ok := bytes.Cut(key, []byte{0})
	if !ok || len(number) != 4 {
		return route.Partition{}, fmt.Errorf("%w: checkpoint key %q", offsets.ErrCorrupt, key)
	}
	return route.Partition{Topic: string(topic), Partition: int32(binary.BigEndian.Uint32(number))}, nil
}

func checksum(key, text []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, table), table, text)
}

// seal puts the CRC-32C of key and text before text.
func seal(key, text []byte) []byte {
	value := binary.BigEndian.AppendUint32(make([]byte, 0, sealSize+len(text)), checksum(key, text))
	return append(value, text...)
}

// unseal checks the seal and returns the text. It is the database's memory: valid within the transaction.
func unseal(key, value []byte) ([]byte, error) {
	if len(value) < sealSize {
		return nil, fmt.Errorf("%w: value of %d bytes", offsets.ErrCorrupt, len(value))
	}
	text := value[sealSize:]
	if want, got := binary.BigEndian.Uint32(value), checksum(key, text); want != got {
		return nil, fmt.Errorf("%w: stored checksum %08x, computed %08x", offsets.ErrCorrupt, want, got)
	}
	return text, nil
}

func put(b *bbolt.Bucket, key, text []byte) error { return b.Put(key, seal(key, text)) }

func writeJSON(tx *bbolt.Tx, bucket, key []byte, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return put(tx.Bucket(bucket), key, text)
}

func readJSON(tx *bbolt.Tx, bucket, key []byte, into any) (bool, error) {
	value := tx.Bucket(bucket).Get(key)
	if value == nil {
		return false, nil
	}
	text, err := unseal(key, value)
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)
	}
	return true, nil
}

// createLayout makes the buckets of a new file, and refuses one of another layout.
func createLayout(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists(metaBucket())
	if err != nil {
		return err
	}
	if meta.Get(layoutKey()) == nil {
		if err := errors.Join(putNumber(meta, layoutKey(), layoutVersion), putNumber(meta, countKey(), 0)); err != nil {
			return err
		}
	}
	switch version, err := number(meta, layoutKey()); {
	case err != nil:
		return err
	case version != layoutVersion:
		return fmt.Errorf("layout: %w", &offsets.VersionError{Got: version, Known: layoutVersion})
	}
	for _, name := range [][]byte{routeBucket(), checkpointsBucket(), eventsBucket()} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// number reads a decimal number of the meta bucket.
func number(meta *bbolt.Bucket, key []byte) (int, error) {
	text, err := unseal(key, meta.Get(key))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %q", key, offsets.ErrCorrupt, text)
	}
	return n, nil
}

func putNumber(meta *bbolt.Bucket, key []byte, n int) error {
	return put(meta, key, []byte(strconv.Itoa(n)))
}

// countOne counts a partition's first checkpoint. Checkpoints are never removed, so that fewer than were counted are a damage: without the
// count, a page that lost some would make partitions look as if they had never been copied.
func countOne(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket())
	n, err := number(meta, countKey())
	if err != nil {
		return err
	}
	return putNumber(meta, countKey(), n+1)
}

// checkAll reads everything once, so that a damaged file is refused at the start and not in the middle of a night.
func checkAll(tx *bbolt.Tx) error {
	found := 0
	err := tx.Bucket(checkpointsBucket()).ForEach(func(key, _ []byte) error {
		found++
		p, err := parsePartitionKey(key)
		if err != nil {
			return err
		}
		c, err := readCheckpoint(tx, p)
		if err == nil && c == nil { // a branch page that leads elsewhere
			err = fmt.Errorf("checkpoint of %s: %w: it is there but is not found by its key", p, offsets.ErrCorrupt)
		}
		return err
	})
	if err != nil {
		return err
	}
	count, err := number(tx.Bucket(metaBucket()), countKey())
	if err != nil {
		return err
	}
	if count != found {
		return fmt.Errorf("%w: %d checkpoints of %d", offsets.ErrCorrupt, found, count)
	}
	if _, err := readRoute(tx); err != nil {
		return err
	}
	return tx.Bucket(eventsBucket()).ForEach(func(key, value []byte) error {
		_, err := unseal(key, value)
		return err
	})
}
