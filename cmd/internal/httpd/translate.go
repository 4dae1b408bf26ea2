package httpd

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/route"
)

// Dictionary is the connector, as far as it translates offsets.
type Dictionary interface {
	Translate(ctx context.Context, p route.Partition, at route.Offset) (connector.Translation, error)
	TranslateGroup(ctx context.Context, group string) ([]connector.Translation, error)
}

// Translator gives a connector's translations in the API's words.
type Translator struct{ Dictionary Dictionary }

// Translate implements api.Translator.
func (t Translator) Translate(ctx context.Context, p route.Partition, at route.Offset) (api.Translation, error) {
	one, err := t.Dictionary.Translate(ctx, p, at)
	if errors.Is(err, connector.ErrElsewhere) {
		err = fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return translated(one), err
}

// TranslateGroup implements api.Translator.
func (t Translator) TranslateGroup(ctx context.Context, group string) ([]api.Translation, error) {
	found, err := t.Dictionary.TranslateGroup(ctx, group)
	all := make([]api.Translation, 0, len(found))
	for _, one := range found {
		all = append(all, translated(one))
	}
	return all, err
}

func translated(t connector.Translation) api.Translation {
	return api.Translation{
		Topic: t.Source.Topic, Partition: t.Source.Partition, Offset: int64(t.Offset), TargetTopic: t.Target.Topic, TargetPartition: t.Target.Partition,
		TargetOffset: int64(t.TargetOffset), Exact: t.Exact, Reason: t.Why,
	}
}
