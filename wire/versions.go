package wire

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versions is what both ends of a connection speak.
type versions struct {
	newest [kmsg.MaxKey + 1]int16 // plus one, so that the zero value knows nothing
}

func (v *versions) max(key int16) int16 {
	if key < 0 || int(key) >= len(v.newest) {
		return -1
	}
	return v.newest[key] - 1
}

// learn takes over what a broker says. A range that does not meet ours counts as unsupported.
func (v *versions) learn(keys []kmsg.ApiVersionsResponseApiKey) {
	for _, k := range keys {
		if k.ApiKey < 0 || int(k.ApiKey) >= len(v.newest) {
			continue
		}
		oldest, newest := ours(k.ApiKey)
		if newest = min(newest, k.MaxVersion); newest >= max(oldest, k.MinVersion) {
			v.newest[k.ApiKey] = newest + 1
		}
	}
}

func ours(key int16) (oldest, newest int16) {
	switch key {
	case keyProduce:
		return minProduce, maxProduce
	case keyFetch:
		return minFetch, maxFetch
	}
	if req := kmsg.RequestForKey(key); req != nil {
		return 0, req.MaxVersion()
	}
	return 0, -1
}

// negotiate asks the broker what it speaks. Version 3 first, which tells the broker who we are; one that does not know it says so in
// version 0 (KIP-511).
func (c *Conn) negotiate(ctx context.Context) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "causeway", "1"
	for _, req.Version = range []int16{3, 0} {
		r, err := c.call(ctx, req)
		if err != nil {
			return err
		}
		resp, ok := r.(*kmsg.ApiVersionsResponse)
		if !ok {
			panic("BUG: ApiVersions is answered by something else")
		}
		if resp.ErrorCode == kerr.UnsupportedVersion.Code && req.Version > 0 {
			continue
		}
		if err = kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return fmt.Errorf("ask for versions: %w", err)
		}
		c.versions.learn(resp.ApiKeys)
		return nil
	}
	return fmt.Errorf("ask for versions: %w", ErrUnsupported)
}
