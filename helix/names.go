package helix

import "time"

// State is a state of the model OnlineOffline, always upper case on the wire.
type State string

// States of the model OnlineOffline, and the two that every model has.
const (
	Offline State = "OFFLINE" // the initial state
	Online  State = "ONLINE"
	Dropped State = "DROPPED" // never stored: the entry goes
	Error   State = "ERROR"   // left by an administrator's reset or by dropping
)

// The one state model and factory that Causeway knows.
const (
	OnlineOffline  = "OnlineOffline"
	DefaultFactory = "DEFAULT"
)

// PublishedVersion is the Helix version that we say we are. Java peers up to 0.9 compare versions part by part without stopping at the first
// that is greater, so that 1.x and 2.x would be "incompatible" for them; 0.6.8 passes everywhere, for batch messages too.
const PublishedVersion = "0.6.8"

// Keys of records. What each means stands beside its users.
const (
	keySessionID    = "SESSION_ID"
	keyLiveInstance = "LIVE_INSTANCE" // <pid>@<host>, for people
	keyHelixVersion = "HELIX_VERSION"

	keyEnabled           = "HELIX_ENABLED" // absent = enabled
	keyHost              = "HELIX_HOST"
	keyPort              = "HELIX_PORT"
	keyTagList           = "TAG_LIST"                 // list
	keyDisabledPartition = "HELIX_DISABLED_PARTITION" // map: resource → comma list; in old records a list of partitions of every resource
	keyAutoJoin          = "allowParticipantAutoJoin"
	keyCompress          = "enableCompression"

	keyRebalanceMode    = "REBALANCE_MODE"
	keyIdealStateMode   = "IDEAL_STATE_MODE" // what REBALANCE_MODE was called first
	keyStateModelRef    = "STATE_MODEL_DEF_REF"
	keyFactory          = "STATE_MODEL_FACTORY_NAME"
	keyNumPartitions    = "NUM_PARTITIONS"
	keyReplicas         = "REPLICAS"
	keyMaxPerInstance   = "MAX_PARTITIONS_PER_INSTANCE"
	keyBatchMode        = "BATCH_MESSAGE_MODE"
	keyBucketSize       = "BUCKET_SIZE"
	keyExternalViewOff  = "EXTERNAL_VIEW_DISABLED"
	modeCustomized      = "CUSTOMIZED"
	keyStateModel       = "STATE_MODEL_DEF"
	keyCurrentState     = "CURRENT_STATE"
	keyPreviousState    = "PREVIOUS_STATE"
	keyInfo             = "INFO"
	keyStartTime        = "START_TIME" // ms since 1970, as all times here
	keyEndTime          = "END_TIME"
	keyTriggeredBy      = "TRIGGERED_BY"
	keyHistory          = "HISTORY" // list
	keyLastOffline      = "LAST_OFFLINE_TIME"
	keyInitialState     = "INITIAL_STATE"
	keyStatePriority    = "STATE_PRIORITY_LIST"
	keyTransitionsOrder = "STATE_TRANSITION_PRIORITYLIST"
)

// Keys and values of messages.
const (
	keyMsgID         = "MSG_ID"
	keyMsgType       = "MSG_TYPE"
	keyMsgState      = "MSG_STATE"
	keyCreated       = "CREATE_TIMESTAMP"
	keyExpiryPeriod  = "EXPIRY_PERIOD" // ms
	keyTimeout       = "TIMEOUT"       // ms; absent or below 1: none
	keyFrom          = "FROM_STATE"
	keyTo            = "TO_STATE"
	keyResource      = "RESOURCE_NAME"
	keyPartition     = "PARTITION_NAME" // simple, in a batch also a list
	keySource        = "SRC_NAME"
	keySourceSession = "SRC_SESSION_ID"
	keySourceType    = "SRC_INSTANCE_TYPE"
	keyTarget        = "TGT_NAME"
	keyTargetSession = "TGT_SESSION_ID"
	keyEventName     = "ClusterEventName"
	keyRetryCount    = "RETRY_COUNT"

	msgTransition    = "STATE_TRANSITION"
	msgCancellation  = "STATE_TRANSITION_CANCELLATION"
	msgNoOp          = "NO_OP"
	msgSessionChange = "PARTICIPANT_SESSION_CHANGE"

	msgNew     = "new"
	anySession = "*"

	sessionSync    = "SESSION-SYNC" // the name of the message by which a participant tells the controller to look again
	controllerName = "Controller"
)

const (
	configTrue  = "true"
	configFalse = "false"
)

// pollEvery is how often a state is looked at that ZooKeeper announces too, in case the announcement is lost.
const pollEvery = time.Second
