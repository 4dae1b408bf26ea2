package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/cmd/internal/httpd"
	"github.com/causeway-mirror/causeway/letters"
	"github.com/causeway-mirror/causeway/wire"
)

// postOffice puts the dead letters of the route back, one call at a time. It connects for each: this is rare.
type postOffice struct {
	target  endpoint
	pattern string // of the dead-letter topics' names
	route   string
	log     hclog.Logger
	turn    chan struct{}
}

func newPostOffice(s *settings, log hclog.Logger) *postOffice {
	return &postOffice{target: s.target, pattern: s.deadLetter, route: s.route.String(), log: log, turn: make(chan struct{}, 1)}
}

func (o *postOffice) putBack(ctx context.Context, topic string) (api.DeadLetters, error) {
	did := api.DeadLetters{Topic: topic, DeadLetterTopic: letters.Topic(o.pattern, topic)}
	if !o.target.known() {
		return did, fmt.Errorf("%w: the controller was not told where the target is", api.ErrImpossible)
	}
	select {
	case o.turn <- struct{}{}:
	default:
		return httpd.DeadLetters(o.log, did, letters.Result{}, letters.ErrBusy)
	}
	defer func() { <-o.turn }()
	var r letters.Result
	err := o.open(ctx, func(box *letters.Box) (err error) {
		r, err = box.PutBack(ctx, topic, did.DeadLetterTopic)
		return err
	})
	return httpd.DeadLetters(o.log, did, r, err)
}

// list gives the letters of a source topic that were not put back.
func (o *postOffice) list(ctx context.Context, topic string) ([]api.DeadLetter, error) {
	if !o.target.known() {
		return nil, fmt.Errorf("%w: the controller was not told where the target is", api.ErrImpossible)
	}
	var found []letters.Letter
	err := o.open(ctx, func(box *letters.Box) (err error) {
		found, err = box.List(ctx, topic, letters.Topic(o.pattern, topic))
		return err
	})
	return httpd.ListDeadLetters(found, err)
}

// open lets something be done with the route's letters over connections of its own.
func (o *postOffice) open(ctx context.Context, do func(*letters.Box) error) error {
	cfg, err := o.target.config(ctx)
	if err != nil {
		return err
	}
	client, err := wire.NewClient(cfg, o.log)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", cfg.Name, err)
	}
	defer client.Close()
	admin := cluster.NewAdmin(cfg, o.log)
	err = do(letters.NewBox(o.route, client, admin, nil))
	if closeErr := admin.Close(); closeErr != nil {
		o.log.Debug("connection of administration did not close well", "err", closeErr)
	}
	return err
}
