// Package batch reads, checks, patches and rewrites Kafka record batches as they stand in Fetch responses and Produce requests.
//
// It owns the knowledge of the bytes: the v2 batch and its header, the two message formats before it (magic 0 and 1), the codecs, and what may be changed in a batch that passes
// through compressed. A batch that passes raw is patched in place (Batch.Patch): its CRC follows from the old one and from the changed header bytes, so a payload bit that was
// flipped on the way is still found by the target's broker. A batch that cannot pass raw is decoded and encoded anew (Rewriter), and only then is a CRC computed in full.
//
// Promises: no input bytes, however hostile, make it panic or allocate more than Reader.MaxDecoded; what is wrong with them is told by *CorruptError. It does no IO, starts no
// goroutines, logs nothing and reads no clock.
//
// Bytes have one owner. A Batch is a view of the caller's buffer. A Record is a view of its Reader's memory (or of the batch, when that is not compressed) and lives until the
// next call. What Rewriter.Rewrite returns is freshly allocated and the caller's.
//
// It imports the standard library, route and the codec libraries, never a Kafka client.
package batch
