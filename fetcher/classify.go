package fetcher

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/route"
)

// remedy is what a partition's error code calls for.
type remedy int8

const (
	reroute  remedy = iota + 1 // ask metadata, try again; never proof of anything
	measure                    // ask for the log's ends, then tell the lane
	renew                      // begin a new session, then as reroute
	suspect                    // fetch again over a new connection; if it is the same again, tell the lane
	tellLane                   // only the lane's owner can decide
)

// classify maps a partition's error code.
func classify(code int16) (r remedy, class route.FaultClass) {
	switch code {
	case kerr.NotLeaderForPartition.Code, kerr.LeaderNotAvailable.Code, kerr.ReplicaNotAvailable.Code:
		return reroute, route.Moved // an election or a reassignment: metadata knows soon
	case kerr.FencedLeaderEpoch.Code:
		return reroute, route.Moved // our metadata is older than the broker's
	case kerr.UnknownLeaderEpoch.Code:
		return reroute, route.Moved // the broker's metadata is older than ours; it catches up
	case kerr.OffsetNotAvailable.Code:
		return reroute, route.Moved // a new leader does not know its high watermark yet
	case kerr.KafkaStorageError.Code:
		return reroute, route.Moved // the broker's disk failed: another replica takes over
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code:
		return reroute, route.SourceChanged // mostly a broker that has just started and has no metadata yet; the router tells when it lasts
	case kerr.InconsistentTopicID.Code:
		return renew, route.SourceChanged // the topic was recreated, or the broker's session holds an older id; the router tells which
	case kerr.OffsetOutOfRange.Code:
		return measure, route.SourceChanged // expired by retention, truncated, or asked of a replica that lags
	case kerr.CorruptMessage.Code, kerr.InvalidRecord.Code:
		return suspect, route.Corrupt // the broker's own check failed: its disk, or bytes lost on the way to its memory
	case kerr.TopicAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code:
		return tellLane, route.Refused // no right to read: an operator must grant it
	case kerr.UnsupportedCompressionType.Code:
		return tellLane, route.Refused // zstd for a Fetch version below 10: it stays so until the broker is upgraded
	default:
		return reroute, route.Busy // UNKNOWN_SERVER_ERROR, throttling, codes of the future: nothing is lost by asking again later
	}
}

// Codes of faults for which the protocol has no error.
const (
	codeCorrupt  = "CORRUPT_BATCH"   // our own check of a batch failed
	codeDiverged = "DIVERGING_EPOCH" // the leader's log is not the one that was read: what followed was lost in an unclean election
)

// DivergedError says up to where the source's log is the one that was read (KIP-320): what was read after End is not in it.
type DivergedError struct {
	Epoch int32        // the last leader epoch that both have
	End   route.Offset // where that epoch ends in the leader's log
}

// Error gives epoch and offset.
func (e *DivergedError) Error() string {
	return "the source's log differs from what was read after epoch " + strconv.Itoa(int(e.Epoch)) + ", which ends at offset " + strconv.FormatInt(int64(e.End), 10)
}

// Parting gives both fields, for those who know no fetcher.
func (e *DivergedError) Parting() (epoch int32, end route.Offset) { return e.Epoch, e.End }

// codeName gives an error code's name as a label.
func codeName(code int16) string {
	if e, ok := kerr.ErrorForCode(code).(*kerr.Error); ok && e != kerr.UnknownServerError { //nolint:errorlint // the function returns nothing else
		return e.Message
	}
	if code == kerr.UnknownServerError.Code {
		return kerr.UnknownServerError.Message
	}
	return "CODE_" + strconv.Itoa(int(code))
}
