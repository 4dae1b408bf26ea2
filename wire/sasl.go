package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

var errExchange = errors.New("the broker ended the exchange before the mechanism did")

// authenticate logs in if the cluster has SASL, and arranges that the connection does so again when four fifths of the session that the
// broker grants have passed (KIP-368).
func (c *Client) authenticate(ctx context.Context, conn *Conn) error {
	if c.mechanism == nil {
		return nil
	}
	if err := conn.lock(ctx.Done()); err != nil {
		return err
	}
	defer conn.unlock()
	if err := conn.loginLocked(ctx, c.mechanism); err != nil {
		return err
	}
	later := context.WithoutCancel(ctx) // the connection outlives the caller's context
	conn.login.renew = func() error {
		if err := conn.drainLocked(); err != nil { // nothing may stand between handshake and authentication
			return err
		}
		ctx, cancel := context.WithTimeout(later, conn.cfg.RequestTimeout)
		defer cancel()
		return conn.loginLocked(ctx, c.mechanism)
	}
	return nil
}

// loginLocked runs one exchange. It sets when the next one is due.
func (c *Conn) loginLocked(ctx context.Context, m sasl.Mechanism) error {
	refused := func(err error, message *string) error {
		e := &AuthError{Mechanism: m.Name(), Err: err}
		if message != nil {
			e.Message = *message
		}
		return e
	}
	if err := c.handshakeLocked(ctx, m.Name()); err != nil {
		return err
	}
	session, out, err := m.Authenticate(ctx, c.addr)
	if err != nil {
		return refused(err, nil)
	}
	var lifetime time.Duration
	started := time.Now()
	for done := false; !done || len(out) > 0; {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.SASLAuthBytes = out
		req.Version = c.MaxVersion(req.Key())
		r, err := c.callLocked(ctx, req)
		if err != nil {
			return err
		}
		resp, ok := r.(*kmsg.SASLAuthenticateResponse)
		if !ok {
			panic("BUG: SaslAuthenticate is answered by something else")
		}
		if err = kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return refused(err, resp.ErrorMessage)
		}
		lifetime = time.Duration(resp.SessionLifetimeMillis) * time.Millisecond
		if done {
			break // that was the mechanism's last word
		}
		if done, out, err = session.Challenge(resp.SASLAuthBytes); err != nil {
			return refused(err, nil)
		}
		if !done && len(out) == 0 {
			return refused(errExchange, nil)
		}
	}
	c.login.due = dueIn(started, lifetime, c.cfg.RenewalGap)
	return nil
}

// never is when a session without a lifetime must be renewed.
const never = 100 * 365 * 24 * time.Hour

func dueIn(started time.Time, lifetime, gap time.Duration) time.Time {
	if lifetime <= 0 {
		return started.Add(never)
	}
	return started.Add(max(lifetime/5*4, gap)) // a session that is over can still be renewed, as long as nothing else is sent
}

func (c *Conn) handshakeLocked(ctx context.Context, mechanism string) error {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Mechanism = mechanism
	req.Version = c.MaxVersion(req.Key())
	if req.Version < 1 || c.MaxVersion((*kmsg.SASLAuthenticateRequest)(nil).Key()) < 0 {
		return fmt.Errorf("authenticate: %w (Kafka 1.0 is the oldest that serves)", ErrUnsupported)
	}
	r, err := c.callLocked(ctx, req)
	if err != nil {
		return err
	}
	resp, ok := r.(*kmsg.SASLHandshakeResponse)
	if !ok {
		panic("BUG: SaslHandshake is answered by something else")
	}
	if err = kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return &AuthError{Mechanism: mechanism, Message: "the broker knows " + strings.Join(resp.SupportedMechanisms, ", "), Err: err}
	}
	return nil
}
