package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/wire"
)

const (
	askedAtOnce  = 8                   // addresses or brokers
	answerWithin = 10 * time.Second    // one of them
	endsSoon     = 14 * 24 * time.Hour // a certificate: time to issue another one
	zstdVersion  = 7                   // of Produce, the first that may carry zstd (KIP-110)
)

// checkedSide is one cluster of the route, asked by the clients that a mirror uses.
type checkedSide struct {
	part    string // source or target
	cfg     cluster.Config
	client  *wire.Client
	admin   *cluster.Admin
	answers bool
	id      string // the cluster's; "" if it has none
	brokers int
	oldest  map[kmsg.Key]int16 // by request: the newest version that all reached brokers speak
	rights  int32              // on the cluster itself, as bits; unknownRights
}

func newCheckedSide(part string, cfg cluster.Config) (*checkedSide, error) {
	client, err := wire.NewClient(cfg, silent())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	return &checkedSide{part: part, cfg: cfg, client: client, admin: cluster.NewAdmin(cfg, silent()), oldest: map[kmsg.Key]int16{}, rights: unknownRights}, nil
}

func (s *checkedSide) close() {
	s.client.Close()
	_ = s.admin.Close() // it has only been asked
}

func (s *checkedSide) key(name string) string { return "route." + s.part + "." + name }

// reach connects to each bootstrap address, and then to each broker under the address that it tells.
func (s *checkedSide) reach(ctx context.Context, r *findings) {
	s.checkOwnCertificate(r)
	found := make([]point, len(s.cfg.Bootstrap))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, address := range s.cfg.Bootstrap {
		group.Go(func() error {
			found[i] = s.tryAddress(ctx, address)
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	for _, p := range found {
		s.answers = s.answers || p.Severity != bad
	}
	for _, p := range found {
		if s.answers && p.Severity == bad {
			p.Severity = warn // the others lead to the cluster as well, until they are down
		}
		r.add(p)
	}
	if s.answers {
		s.reachBrokers(ctx, r)
	}
}

// tryAddress goes all the way to an answer, through TLS and SASL.
func (s *checkedSide) tryAddress(ctx context.Context, address string) point {
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	at := point{good, s.key("bootstrap"), address, "", ""}
	conn, err := s.cfg.Dial(limited, address)
	if err != nil {
		return s.refused(at, err)
	}
	ends := certificateEnd(conn)
	_ = conn.Close() // nothing was sent
	alone := s.cfg
	alone.Bootstrap = []string{address}
	client, err := wire.NewClient(alone, silent())
	if err != nil {
		return s.refused(at, err)
	}
	defer client.Close()
	answer, err := describe(limited, client, []string{})
	if err != nil {
		return s.refused(at, err)
	}
	at.Reason = fmt.Sprintf("answers for a cluster of %d brokers", len(answer.Brokers))
	if !ends.IsZero() && time.Until(ends) < endsSoon {
		at.Severity, at.Remedy = warn, "renew the broker's certificate"
		at.Reason = "the broker's certificate ends " + ends.UTC().Format(time.RFC3339)
	}
	return at
}

// certificateEnd is when the first certificate of the broker's chain ends; zero without TLS.
func certificateEnd(conn net.Conn) (first time.Time) {
	encrypted, ok := conn.(*tls.Conn)
	if !ok {
		return first
	}
	for _, c := range encrypted.ConnectionState().PeerCertificates {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

func (s *checkedSide) checkOwnCertificate(r *findings) {
	end, err := s.cfg.CertificateExpiry()
	switch {
	case err != nil || end.IsZero(): // Validate has told what is wrong with the files
	case time.Until(end) <= 0:
		r.add(point{bad, s.key("tls"), end.UTC().Format(time.RFC3339), "our own certificate has ended", "issue another one"})
	case time.Until(end) < endsSoon:
		r.add(point{warn, s.key("tls"), end.UTC().Format(time.RFC3339), "our own certificate ends then", "issue another one before"})
	}
}

// refused turns an error of a connection or a request into an error finding.
func (s *checkedSide) refused(at point, err error) point {
	at.Severity, at.Reason, at.Remedy = bad, cause(err), "look into the broker's log"
	switch cluster.Classify(err) {
	case cluster.Unreachable:
		at.Remedy = "start the broker, or mend the address or the way to it"
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it is there, and does not like what it gets
			at.Remedy = "if it wants TLS or SASL, mend tls and sasl of route." + s.part
		}
	case cluster.Authentication:
		at.Remedy = "mend tls and sasl of route." + s.part + ", or the broker's list of users"
	case cluster.Authorization:
		at.Remedy = "grant it to the mirror's user, see docs/security.md"
	case cluster.Invalid, cluster.NotFound, cluster.Exists, cluster.Other:
	}
	return at
}

// cause is the innermost part of an error that says what happened; the address stands before it already.
func cause(err error) string {
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op != "remote error" && broken.Op != "local error" {
		return broken.Err.Error()
	}
	if link, ok := errors.AsType[*wire.LinkError](err); ok {
		return link.Err.Error()
	}
	return err.Error()
}

// reachBrokers connects to all of them: partitions are copied from and to the one that leads them, whatever address led to the cluster.
func (s *checkedSide) reachBrokers(ctx context.Context, r *findings) {
	answer, err := describe(ctx, s.client, []string{})
	if err != nil {
		r.add(s.refused(point{bad, s.key("bootstrap"), strings.Join(s.cfg.Bootstrap, ","), "", ""}, err))
		s.answers = false
		return
	}
	if answer.Version >= 8 && answer.Version <= 10 { // KIP-430; later versions ask elsewhere, and need no IdempotentWrite
		s.rights = answer.AuthorizedOperations
	}
	s.brokers = len(answer.Brokers)
	if answer.ClusterID != nil {
		s.id = *answer.ClusterID
	}
	var (
		mu    sync.Mutex // guards found and s.oldest
		found = map[int32]point{}
		group errgroup.Group
	)
	group.SetLimit(askedAtOnce)
	for _, b := range answer.Brokers {
		group.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			conn, dialErr := s.client.Dial(limited, b.NodeID)
			mu.Lock()
			defer mu.Unlock()
			if dialErr != nil {
				at := point{Key: s.part + " broker " + decimal(b.NodeID), Value: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))}
				at = s.refused(at, fmt.Errorf("can't be reached under the address that it advertises: %w", dialErr))
				at.Reason = "can't be reached under the address that it advertises: " + at.Reason
				at.Remedy += "; or mend its advertised.listeners"
				found[b.NodeID] = at
				return nil
			}
			s.learn(conn)
			conn.Close()
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	for _, id := range slices.Sorted(maps.Keys(found)) {
		r.add(found[id])
	}
	if len(found) == 0 {
		r.add(point{good, s.part + " brokers", strconv.Itoa(s.brokers), "all reached under the addresses that they advertise", ""})
	}
	s.checkVersions(r)
}

// asked are the requests whose versions matter here.
var asked = []kmsg.Key{kmsg.Produce, kmsg.Fetch, kmsg.InitProducerID, kmsg.DescribeProducers}

func (s *checkedSide) learn(conn *wire.Conn) {
	for _, key := range asked {
		newest := conn.MaxVersion(key.Int16())
		if before, ok := s.oldest[key]; !ok || newest < before {
			s.oldest[key] = newest
		}
	}
}

// checkVersions wants record batches of version 2 (Kafka 0.11), and idempotent producers from a target.
func (s *checkedSide) checkVersions(r *findings) {
	if len(s.oldest) == 0 {
		return
	}
	const remedy = "upgrade the brokers"
	if newest := s.oldest[kmsg.Fetch]; s.part == "source" && newest < 4 {
		r.add(point{bad, "source Fetch version", decimal(newest), "a broker is older than Kafka 0.11, whose batches are the first that are copied", remedy})
	}
	if s.part != "target" {
		return
	}
	if newest := s.oldest[kmsg.Produce]; newest < 3 || s.oldest[kmsg.InitProducerID] < 0 {
		r.add(point{bad, "target Produce version", decimal(newest), "a broker is older than Kafka 0.11 and has no idempotent producers", remedy})
	}
	older := s.oldest[kmsg.DescribeProducers] < 0 // than 2.8
	if older && s.rights != unknownRights && !may(s.rights, kmsg.ACLOperationIdempotentWrite) {
		r.add(point{bad, "target rights", "no IdempotentWrite", "the mirror's user may not take a producer id", "grant IdempotentWrite on the cluster"})
	}
}

// describe asks for metadata, with what we may do; an empty list is of no topic.
func describe(ctx context.Context, client *wire.Client, topics []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	answer, err := client.Request(ctx, -1, req)
	if err != nil {
		return nil, err
	}
	resp, ok := answer.(*kmsg.MetadataResponse)
	if !ok {
		panic("BUG: Metadata is answered by something else")
	}
	if err = kerr.ErrorForCode(resp.ErrorCode); err == nil && len(resp.Brokers) == 0 {
		err = errors.New("lists no brokers: it has not joined its cluster yet")
	}
	return resp, err
}

// unknownRights is what brokers say that do not tell rights (before Kafka 2.3), or were not asked.
const unknownRights = -1 << 31

// may says whether an operation is among those that a broker lists as allowed.
func may(rights int32, op kmsg.ACLOperation) bool { return rights&(1<<int(op)) != 0 }

// checkZooKeeper wants one address that takes connections; a client finds the others by itself.
func (p *preflight) checkZooKeeper(ctx context.Context, key, text string) {
	hosts, _, _ := strings.Cut(text, "/")
	var failures []string
	reached := 0
	for host := range strings.SplitSeq(hosts, ",") {
		host = strings.TrimSpace(host)
		if !strings.Contains(host, ":") {
			host += ":2181"
		}
		conn, err := (&net.Dialer{Timeout: answerWithin}).DialContext(ctx, "tcp", host)
		if err != nil {
			failures = append(failures, host+": "+cause(err))
			continue
		}
		reached++
		_ = conn.Close() // nothing was sent
	}
	at := point{good, key, text, "takes connections", ""}
	if len(failures) > 0 {
		at = point{warn, key, text, strings.Join(failures, "; "), "start it, or mend the address or the way to it"}
	}
	if reached == 0 {
		at.Severity = bad
	}
	p.add(at)
}
