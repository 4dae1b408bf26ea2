package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

func TestVerbsChangeTopics(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	base := serve(t, apiOf(t, "controller", lead{fleet: fleet}))
	require.Equal(t, "audit: added with 3 partitions", told(t, base, "topics add audit"))
	require.Equal(t, "views: added with 7 partitions", told(t, base, "topics add views --partitions 7"))
	require.Equal(t, map[string]int32{"orders": 4, "audit": 3, "views": 7}, fleet.topics)
	require.Equal(t, "views: 9 partitions", told(t, base, "topics expand views --partitions 9"))
	require.Equal(t, int32(9), fleet.topics["views"])
	require.Equal(t, "views: mirrored no more; its positions are kept, and what is on the target stays there", told(t, base, "topics remove views"))
	require.Equal(t, []string{"audit", "orders"}, fleet.Topics())
}

// TestVerbsOfTopicsAndPartitions: a mirror in one process knows them as well as a cluster does.
func TestVerbsOfTopicsAndPartitions(t *testing.T) {
	t.Parallel()
	alone, fleet := newFakeOperator(), newFakeFleet()
	for base, o := range map[string]*fakeOperator{
		serve(t, apiOf(t, roleStandalone, &alone)):           &alone,
		serve(t, apiOf(t, "controller", lead{fleet: fleet})): &fleet.fakeOperator,
	} {
		const of = " --topic orders --partition 3"
		p := route.Partition{Topic: "orders", Partition: 3}
		for _, row := range []struct {
			line, says string
			want       operator.Topic
		}{
			{"topics pause orders", "orders: paused", operator.Topic{Settings: operator.Settings{Paused: true}}},
			{"topics resume orders", "orders: resumed", operator.Topic{}},
			{"topics limit orders --records-per-second 5000", "orders: at most 5,000 records/s", limited(operator.Limits{RecordsPerSecond: 5000})},
			{
				"topics limit orders --bytes-per-second 10MiB --records-per-second 20", "orders: at most 20 records/s and 10MiB/s",
				limited(operator.Limits{RecordsPerSecond: 20, BytesPerSecond: 10 << 20}),
			},
			{"topics limit orders --bytes-per-second 0", "orders: no limit", operator.Topic{}},
			{"partitions pause" + of, "orders-3: paused", own(operator.Settings{Paused: true})},
			{"partitions resume" + of, "orders-3: resumed", own(operator.Settings{})},
			{"partitions limit --bytes-per-second 1500" + of, "orders-3: at most 1500 bytes/s", own(operator.Settings{Limits: operator.Limits{BytesPerSecond: 1500}})},
			{"partitions limit --records-per-second 0" + of, "orders-3: no limit", own(operator.Settings{})},
			{"partitions retry" + of, "orders-3: will be tried at once", operator.Topic{}},
			{
				"dead-letters retry orders", "orders: 3 records put back from orders.dead-letter, 1 refused again, 0 passed over that are none of its own",
				operator.Topic{},
			},
		} {
			require.Equal(t, row.says, told(t, base, row.line))
			require.True(t, row.want.Equal(o.settings["orders"]), "%s: %v", row.line, o.settings)
		}
		require.Equal(t, map[route.Partition]bool{p: true}, o.retried)
		code, listed, _ := command(t.Context(), "dead-letters", "list", "orders", "--api", base)
		require.Equal(t, exitOK, code)
		require.Contains(t, listed, "orders-3  1,006   orders-3  1,500,000  oversized: MESSAGE_TOO_LARGE")
	}
}

func limited(l operator.Limits) operator.Topic {
	return operator.Topic{Settings: operator.Settings{Limits: l}}
}

// own are the settings of partition 3 alone.
func own(s operator.Settings) operator.Topic {
	var t operator.Topic
	t.Set(3, s)
	return t
}

func TestAResetTellsWhatHappened(t *testing.T) {
	t.Parallel()
	alone, fleet := newFakeOperator(), newFakeFleet()
	p := route.Partition{Topic: "orders", Partition: 3}
	base := serve(t, apiOf(t, roleStandalone, &alone))
	for _, to := range []string{"earliest", "latest", "120", "2026-01-02T15:04:05Z"} {
		require.Equal(t, "orders-3: position set to 120 (reset to "+to+"; it was 5000)", told(t, base, "partitions reset --topic orders --partition 3 --to "+to))
		require.Equal(t, to, alone.resets[p].String())
	}
	require.Equal(t, "orders-3: reset to 120 noted; it is carried out as soon as the partition's clusters answer, and told in an event",
		told(t, serve(t, apiOf(t, "controller", lead{fleet: fleet})), "partitions reset --topic orders --partition 3 --to 120"))
	require.Equal(t, "120", fleet.resets[p].String())
	code, stdout, stderr := command(t.Context(), "partitions", "reset", "--topic", "orders", "--partition", "9", "--to", "latest", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, `partition "orders-9" is not known (not_found, http 404)`)
}

func TestAPartitionIsMoved(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	base := serve(t, apiOf(t, "controller", lead{fleet: fleet}))
	p := route.Partition{Topic: "orders", Partition: 3}
	require.Equal(t, "orders-3: moves to mirror-2, and stays there until it is freed by an empty --worker",
		told(t, base, "partitions move --topic orders --partition 3 --worker mirror-2"))
	require.Equal(t, "mirror-2", fleet.pins[p])
	require.Equal(t, "orders-3: freed; it goes where balance needs it", told(t, base, "partitions move --topic orders --partition 3 --worker="))
	require.Empty(t, fleet.pins[p])
}

func TestVerbsChangeWorkers(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	base := serve(t, apiOf(t, "controller", lead{fleet: fleet}))
	require.Equal(t, "mirror-1: draining; its partitions go to other workers", told(t, base, "workers drain mirror-1"))
	code, stdout, stderr := command(t.Context(), "workers", "list", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `(?m)^WORKER +STATE +PARTITIONS +RECORDS +BYTES$`, stdout)
	require.Regexp(t, `(?m)^mirror-1 +draining +1 +1500/s +2\.00 MB/s$`, stdout)
	require.Regexp(t, `(?m)^mirror-2 +active `, stdout)
	require.Equal(t, "mirror-2: draining; it keeps its partitions until there is another worker that can take them", told(t, base, "workers drain mirror-2"))
	require.Equal(t, "mirror-2: enabled; it gets its share again", told(t, base, "workers enable mirror-2"))
	require.Equal(t, "mirror-1: enabled; it gets its share again", told(t, base, "workers enable mirror-1"))
	code, stdout, _ = command(t.Context(), "workers", "list", "-o", "json", "--filter", "draining", "--api", base)
	require.Equal(t, exitOK, code)
	require.Equal(t, "[]\n", stdout)
}

func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	base := serve(t, apiOf(t, "controller", lead{fleet: fleet}))
	file := filepath.Join(t.TempDir(), "backup.json")
	require.Equal(t, file+": 1 topic with 4 partitions written", told(t, base, "backup -o "+file))
	code, stdout, stderr := command(t.Context(), "backup", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	saved, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(saved), stdout)
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the backup is left behind")
	fleet.topics = map[string]int32{}
	require.Equal(t, file+": restored; it holds 1 topic with 4 partitions", told(t, base, "restore "+file))
	require.Equal(t, map[string]int32{"orders": 4}, fleet.topics)
	code, _, stderr = command(t.Context(), "backup", "-o", filepath.Join(file, "below"), "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `--output "`+filepath.Join(file, "below")+`": cannot be written: not a directory`)
}

// TestVerbsAreRefused: what the server says comes out as it says it, with exit code 1, and changes nothing.
func TestVerbsAreRefused(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	base := serve(t, apiOf(t, "controller", lead{fleet: fleet}))
	for line, says := range map[string]string{
		"topics add orders":                             `topic "orders" is mirrored already (conflict, http 409)`,
		"topics add nope":                               `topic "nope" does not exist in the source cluster (not_found, http 404)`,
		"topics remove nope":                            `topic "nope" is not known (not_found, http 404)`,
		"topics expand nope --partitions 2":             `topic "nope" is not mirrored (not_found, http 404)`,
		"topics expand orders --partitions 2":           `partitions: 2: it has 4, and topics do not shrink (invalid, http 422)`,
		"topics pause nope":                             `topic "nope" is not known (not_found, http 404)`,
		"topics resume nope":                            `topic "nope" is not known (not_found, http 404)`,
		"partitions pause --topic orders --partition 9": `partition "orders-9" is not known (not_found, http 404)`,
		"topics limit nope --records-per-second 1":      `topic "nope" is not known (not_found, http 404)`,
		"partitions limit --topic nope --partition 0 --records-per-second 1": `partition "nope-0" is not known (not_found, http 404)`,
		"dead-letters retry nope":                                      `there is no such dead-letter topic: nope.dead-letter (not_found, http 404)`,
		"partitions retry --topic nope --partition 0":                  `partition "nope-0" is not known (not_found, http 404)`,
		"partitions resume --topic nope --partition 0":                 `partition "nope-0" is not known (not_found, http 404)`,
		"partitions move --topic orders --partition 0 --worker nobody": `worker "nobody" is not known (not_found, http 404)`,
		"workers drain nobody":                                         `worker "nobody" is not known (not_found, http 404)`,
		"workers enable nobody":                                        `worker "nobody" is not known (not_found, http 404)`,
		"restore " + writeFile(t, `{"v":7}`):                           `v: 7: must be 1 (invalid, http 422)`,
		"restore " + writeFile(t, `topics`):                            `is no backup: `,
		"restore /nowhere/x":                                           `FILE "/nowhere/x": cannot be read: no such file or directory`,
	} {
		code, stdout, stderr := command(t.Context(), append(words(line), "--api", base)...)
		require.Equal(t, exitFailure, code, "%s: %s", line, stderr)
		require.Empty(t, stdout, line)
		require.Contains(t, stderr, says, line)
	}
	require.Equal(t, map[string]int32{"orders": 4}, fleet.topics)
	require.Empty(t, fleet.settings)
}

func TestVerbsNeedToBeWholeAndRight(t *testing.T) {
	t.Parallel()
	for line, says := range map[string][]string{
		"topics add":                                         {"TOPIC: must be given"},
		"topics add a --partitions 0":                        {`--partitions "0": must be a whole number of at least 1`},
		"topics expand a":                                    {"--partitions: must be given"},
		"topics limit a":                                     {"--records-per-second or --bytes-per-second: must be given"},
		"topics limit a --bytes-per-second lots":             {"--bytes-per-second \"lots\": want a size such as 64KiB or 256MiB\n"},
		"topics limit --records-per-second -1":               {`--records-per-second "-1": must be a whole number of at least 0`, "TOPIC: must be given"},
		"topics limit a --bytes-per-second -5":               {"--bytes-per-second \"-5\": must not be negative\n"},
		"partitions pause":                                   {"--topic: must be given", "--partition: must be given"},
		"partitions reset --topic a --partition x --to noon": {`--partition "x": must be a whole number of at least 0`, `--to "noon": must be earliest, latest, an offset, or a time such as 2006-01-02T15:04:05Z`},
		"partitions reset --topic a --partition 1":           {"--to: must be given"},
		"partitions reset --topic a --partition 1 --to -3":   {`--to "-3": an offset must not be negative`},
		"partitions move --topic a --partition 1":            {"--worker: must be given"},
		"partitions limit --topic a --partition 1":           {"--records-per-second or --bytes-per-second: must be given"},
		"workers drain":                                      {"ID: must be given"},
		"restore":                                            {"FILE: must be given"},
	} {
		code, stdout, stderr := command(t.Context(), append(words(line), "--api", "127.0.0.1:1")...)
		require.Equal(t, exitUsage, code, "%s: %s", line, stderr)
		require.Empty(t, stdout, line)
		for _, text := range says {
			require.Contains(t, stderr, text, line)
		}
	}
}

func TestAWorkerSaysThatTheControllerIsToBeAsked(t *testing.T) {
	t.Parallel()
	worker := serve(t, apiOf(t, roleWorker, nil))
	backup := writeFile(t, `{"v":1}`)
	for _, line := range []string{
		"topics add orders", "topics remove orders", "topics expand orders --partitions 3", "workers list", "workers drain w1", "backup", "restore " + backup,
		"partitions move --topic orders --partition 0 --worker w1", "partitions retry --topic orders --partition 0", "topics pause orders",
		"partitions reset --topic orders --partition 0 --to latest", "topics limit orders --records-per-second 1",
	} {
		code, _, stderr := command(t.Context(), append(words(line), "--api", worker)...)
		require.Equal(t, exitFailure, code, line)
		require.Contains(t, stderr, "causeway: this is a worker; ask the controller: ", line)
	}
	code, _, stderr := command(t.Context(), "workers", "list", "--api", serve(t, apiOf(t, roleStandalone, nil)))
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "this mirror is one process of its own (standalone)")
}

// TestAStandbyLeadsToTheLeader: the call arrives there with method, body and token.
func TestAStandbyLeadsToTheLeader(t *testing.T) {
	t.Parallel()
	fleet := newFakeFleet()
	file := writeFile(t, "  s3cret\n")
	guarded := func(cfg *api.Config) { cfg.TokenFile = file }
	leader := serve(t, apiOf(t, "controller", lead{fleet: fleet}, guarded))
	standby := serve(t, apiOf(t, "controller", lead{leader: leader}, guarded))
	code, _, stderr := command(t.Context(), "topics", "add", "audit", "--api", standby)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "unauthorized, http 401")
	require.Contains(t, stderr, "name the file of the token by --token-file or CAUSEWAY_TOKEN_FILE")
	require.Equal(t, "audit: added with 3 partitions", told(t, standby, "topics add audit --token-file "+file))
	require.Equal(t, int32(3), fleet.topics["audit"])
	require.Equal(t, "orders: mirrored no more; its positions are kept, and what is on the target stays there", told(t, standby, "topics remove orders --token-file "+file))
}

func TestALeaderThatCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	standby := serve(t, apiOf(t, "controller", lead{leader: gone.URL}))
	code, _, stderr := command(t.Context(), "topics", "add", "audit", "--api", standby)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "cannot reach the leader at "+gone.URL+", which "+standby+" names: connection refused; ")
	require.Contains(t, stderr, "refused")
	code, _, stderr = command(t.Context(), "topics", "add", "audit", "--api", serve(t, apiOf(t, "controller", lead{})))
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "no controller leads the cluster at the moment (no_leader, http 503)")
}

func TestLeadersThatNameEachOtherAreNotFollowedForEver(t *testing.T) {
	t.Parallel()
	asked := 0
	var base string
	base = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, base+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	code, _, stderr := command(t.Context(), "topics", "add", "audit", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "no leader answers")
	require.Equal(t, mostAsked, asked)
	nowhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTemporaryRedirect) }))
	code, _, stderr = command(t.Context(), "topics", "add", "audit", "--api", nowhere)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `its answer 307 leads nowhere: Location ""`)
}

func TestTheTokenIsNotSentUnencryptedWhereItWasNot(t *testing.T) {
	t.Parallel()
	plain := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s came with %v", r.URL, r.Header) }))
	secure := httptest.NewTLSServer(http.RedirectHandler(plain+"/api/v1/topics", http.StatusTemporaryRedirect))
	t.Cleanup(secure.Close)
	code, _, stderr := command(t.Context(), "topics", "add", "audit", "--api", secure.URL, "--api-ca", authorityOf(t, secure), "--token-file", writeFile(t, "s3cret"))
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "the token is not sent there unencrypted")
	require.NotContains(t, stderr, "s3cret")
}

func TestTheCertificateIsChecked(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(apiOf(t, "controller", lead{fleet: newFakeFleet()}))
	t.Cleanup(secure.Close)
	require.Equal(t, "audit: added with 3 partitions", told(t, secure.URL, "topics add audit --api-ca "+authorityOf(t, secure)))
	code, stdout, stderr := command(t.Context(), "workers", "list", "--api", secure.URL, "--api-ca", authorityOf(t, secure))
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "mirror-1")
	code, _, stderr = command(t.Context(), "topics", "add", "views", "--partitions", "1", "--api", secure.URL)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "certificate signed by unknown authority")
	for file, says := range map[string]string{
		writeFile(t, "none"): "holds no certificate in PEM form",
		"/nowhere/ca.pem":    "cannot be read: no such file or directory",
	} {
		code, _, stderr = command(t.Context(), "status", "--api", secure.URL, "--api-ca", file)
		require.Equal(t, exitFailure, code)
		require.Contains(t, stderr, `--api-ca "`+file+`": `+says)
	}
}

func TestATokenThatIsNoneIsNotSent(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{
		" \n":           "is empty",
		"two words":     "must hold one token without spaces",
		"line\nby line": "must hold one token without spaces",
	} {
		file := writeFile(t, content)
		code, _, stderr := command(t.Context(), "topics", "pause", "orders", "--api", "127.0.0.1:1", "--token-file", file)
		require.Equal(t, exitFailure, code)
		require.Contains(t, stderr, `--token-file "`+file+`": `+says)
		require.NotContains(t, stderr, "words")
	}
	code, _, stderr := command(t.Context(), "topics", "pause", "orders", "--api", "127.0.0.1:1", "--token-file", "/nowhere/token")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `--token-file "/nowhere/token": cannot be read: no such file or directory`)
}

func TestTheTokenIsNeverLogged(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "s3cret")
	base := serve(t, apiOf(t, "controller", lead{fleet: newFakeFleet()}, func(cfg *api.Config) { cfg.TokenFile = file }))
	code, stdout, stderr := command(t.Context(), "topics", "add", "audit", "--api", base, "--token-file", file, "--log-level", "trace")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "method=POST")
	require.NotContains(t, stdout+stderr, "s3cret")
}

func TestTheTokensFileMayStandInTheEnvironment(t *testing.T) {
	file := writeFile(t, "s3cret")
	t.Setenv("CAUSEWAY_TOKEN_FILE", file)
	base := serve(t, apiOf(t, "controller", lead{fleet: newFakeFleet()}, func(cfg *api.Config) { cfg.TokenFile = file }))
	require.Equal(t, "audit: added with 3 partitions", told(t, base, "topics add audit"))
	_, help, _ := command(t.Context(), "topics", "add", "--help")
	require.NotContains(t, help, file)
}

// TestWhatIsNoAPIIsShown: a proxy, or another program.
func TestWhatIsNoAPIIsShown(t *testing.T) {
	t.Parallel()
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "upstream is down\nsee log", http.StatusBadGateway)
	}))
	code, _, stderr := command(t.Context(), "topics", "pause", "orders", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "unexpected answer of "+base+"/api/v1/topics/orders/pause: upstream is down (unexpected, http 502)")
	require.NotContains(t, strings.TrimSuffix(stderr, "\n"), "\n")
}

func TestTheMirrorsFileSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	token := writeFile(t, "s3cret")
	secure := httptest.NewTLSServer(apiOf(t, "controller", lead{fleet: newFakeFleet()}, func(cfg *api.Config) { cfg.TokenFile = token }))
	t.Cleanup(secure.Close)
	cert, key := testkit.NewAuthority(t).Files(t, "mirror")
	_, port, _ := strings.Cut(strings.TrimPrefix(secure.URL, "https://"), ":")
	file := writeFile(t, "server: {listen: ':"+port+"', tls: {cert_file: "+cert+", key_file: "+key+", ca_file: "+authorityOf(t, secure)+"}, auth: {token_file: "+token+"}}")
	code, stdout, stderr := command(t.Context(), "topics", "add", "audit", "--config", file)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, "audit: added with 3 partitions\n", stdout)
	code, _, stderr = command(t.Context(), "topics", "add", "audit", "--config", file, "--token-file", writeFile(t, "other"))
	require.Equal(t, exitFailure, code, "a flag wins over the file")
	require.Contains(t, stderr, "the token is not the right one (unauthorized, http 401)")
}

func TestOffsetsAreShownSavedAndSet(t *testing.T) {
	t.Parallel()
	alone := newFakeOperator()
	mirror := &shownMirror{}
	for p, committed := range []route.Offset{120, 0, -1} {
		mirror.state.Partitions = append(mirror.state.Partitions, api.Partition{Topic: "orders", Partition: int32(p), Committed: committed, Extent: api.Extent{SourceEnd: 5000}})
	}
	alone.mirror = mirror
	base := serve(t, apiOf(t, roleStandalone, &alone))
	code, stdout, stderr := command(t.Context(), "offsets", "show", "--topic", "orders", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `(?m)^PARTITION +STORED +END\norders-0 +120 +5,000\norders-1 +0 +5,000\norders-2 +- +5,000$`, stdout)
	code, stdout, stderr = command(t.Context(), "offsets", "show", "-o", "yaml", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "- topic: orders\n  partition: 0\n  offset: 120\n")

	file := filepath.Join(t.TempDir(), "offsets.json")
	require.Equal(t, file+": 2 positions written; of 1 partition none is stored", told(t, base, "offsets export -o "+file))
	code, _, stderr = command(t.Context(), "offsets", "export", "--output", "/nowhere/off.json", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `--output "/nowhere/off.json": cannot be written: no such file or directory`)
	code, stdout, stderr = command(t.Context(), "offsets", "export", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, `"route": "@a@b@1"`)
	require.Equal(t, file+": 2 partitions reset", told(t, base, "offsets import "+file))
	require.Len(t, alone.resets, 2)
	first := alone.resets[route.Partition{Topic: "orders"}]
	require.Equal(t, "120", first.String())

	for content, says := range map[string]string{
		`{"v":1,"offsets":[{"topic":"orders","partition":9,"offset":1},{"topic":"nope","partition":0,"offset":1}]}`: `orders-9: partition "orders-9" is not known (not_found, http 404)`,
		`{"v":1,"offsets":[{"topic":"orders","partition":0,"offset":-1}]}`:                                          "orders-0: offset -1: must be 0 or more",
		`{"v":2}`: "v: 2: must be 1",
		`nothing`: "holds no positions: ",
	} {
		code, stdout, stderr = command(t.Context(), "offsets", "import", writeFile(t, content), "--api", base)
		require.Equal(t, exitFailure, code, content)
		require.Empty(t, stdout)
		require.Contains(t, stderr, says)
	}
	for _, line := range []string{"offsets show --topic nope", "offsets export --topic nope"} {
		code, _, stderr = command(t.Context(), append(words(line), "--api", base)...)
		require.Equal(t, exitFailure, code)
		require.Contains(t, stderr, `topic "nope" is not mirrored (not_found, http 404)`)
	}
}
