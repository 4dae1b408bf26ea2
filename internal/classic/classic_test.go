package classic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var options = []Option{
	{Name: "port", Key: "controller.port", Usage: "where to listen"},
	{Name: "delay", Key: "controller.delay", Default: "120"},
	{Name: "ratio", Default: "0.5"},
	{Name: "enabled", Key: "controller.enabled", Default: "true"},
}

func TestOneDashAndTwoMeanTheSame(t *testing.T) {
	for _, args := range [][]string{{"-port", "9000"}, {"--port", "9000"}, {"-port=9000"}} {
		v, err := Parse(args, options, "help")
		require.NoError(t, err, args)
		require.Equal(t, 9000, v.Int("port"))
		require.Empty(t, v.Warnings())
	}
}

// TestWordsThatAreNoOptionAreTold: start scripts may have them, and go on as they did; a line of nothing else can't be meant.
func TestWordsThatAreNoOptionAreTold(t *testing.T) {
	v, err := Parse([]string{"backUpToGit", "-port", "9000", "more"}, options, "help")
	require.NoError(t, err)
	require.Equal(t, 9000, v.Int("port"))
	require.Equal(t, []string{`"backUpToGit" is no option and is passed over`, `"more" is no option and is passed over`}, v.Warnings())
	_, err = Parse([]string{"causeway.yaml"}, options, "help")
	require.EqualError(t, err, `unexpected argument "causeway.yaml"; a file is named by --config`)
}

func TestWrongLinesAreRefused(t *testing.T) {
	_, err := Parse([]string{"-prot", "1"}, options)
	var unknown *UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "prot", unknown.Name)
	require.EqualError(t, err, `-prot: there is no such option, did you mean "-port"?`)
	_, err = Parse([]string{"-zookeeper", "a:1"}, options)
	require.EqualError(t, err, "-zookeeper: there is no such option")
	for _, args := range [][]string{{"-port"}, {"-port", "-delay", "1"}} {
		_, err = Parse(args, options)
		var missing *MissingValueError
		require.ErrorAs(t, err, &missing, args)
	}
	v, err := Parse([]string{"-help"}, options, "help")
	require.NoError(t, err)
	require.True(t, v.Given("help"))
	v, err = Parse([]string{"-delay", "-1"}, options)
	require.NoError(t, err)
	require.Equal(t, -1, v.Int("delay"))
}

func TestTheLineWinsOverTheFileAndTheFileOverTheDefault(t *testing.T) {
	v, err := Parse([]string{"-delay", "5"}, options)
	require.NoError(t, err)
	v.SetFile(map[string]string{"controller.delay": "7", "controller.port": " 9001 ", "kafka.cluster.servers.a": "a:1"})
	require.Equal(t, 5, v.Int("delay"))
	require.Equal(t, 9001, v.Int("port"))
	require.InDelta(t, 0.5, v.Float("ratio"), 0)
	require.True(t, v.Bool("enabled"))
	require.True(t, v.Given("port"))
	require.False(t, v.Given("ratio"))
	servers, ok := v.Property("kafka.cluster.servers.a")
	require.True(t, ok)
	require.Equal(t, "a:1", servers)
}

func TestWhatWasReplacedSilentlyIsToldOnce(t *testing.T) {
	v, err := Parse([]string{"-delay", "soon", "-enabled", "yes", "-ratio", "half"}, options)
	require.NoError(t, err)
	require.Equal(t, 120, v.Int("delay"))
	require.Equal(t, 120, v.Int("delay"))
	require.True(t, v.Bool("enabled"))
	require.InDelta(t, 0.5, v.Float("ratio"), 0)
	require.Len(t, v.Warnings(), 3)
	require.Equal(t, `-delay "soon": is not a whole number and counts as its default, "120"`, v.Warnings()[0])
}

func TestUsageNamesEveryOption(t *testing.T) {
	text := Usage("causeway-controller", options)
	require.Contains(t, text, "usage: causeway-controller --config causeway.yaml\n", "what a newcomer needs comes first")
	for _, o := range options {
		require.Contains(t, text, "-"+o.Name)
	}
}
