package leader

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/internal/claim"
)

// NewClient is for the field NewClient of controller-runtime's options: a client
// whose writes do as those of [Election.Config] do. Reads are not touched, and may
// come from a cache.
//
// A write made with a context of no term belongs to the live one, as long as this
// process has had no other: so reconcilers, whose process ends with its term, need
// not know of terms at all. Once a second term has begun, as [Election.Run] may have,
// such a write fails with [ErrNoTerm]: what it says may be of the first.
func (e *Election) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	fenced := claim.Wrap(config, claims{e})
	if options.HTTPClient != nil {
		// It is the manager's, and has the transport of the config already.
		next := options.HTTPClient.Transport
		if next == nil {
			next = http.DefaultTransport
		}
		own := *options.HTTPClient
		own.Transport = claim.NewTransport(next, claims{e}, claim.WhoAmI(config))
		options.HTTPClient = &own
	}
	c, err := client.New(fenced, options)
	if err != nil {
		return nil, fmt.Errorf("leader: no client for the writes of Lease %s: %w", e.lease(), err)
	}
	return &termClient{Client: c, election: e}, nil
}

// within makes a write belong to a term: that of ctx, else the first one. Without
// any, the write goes on as it is: the transport knows if it needs one.
func (e *Election) within(ctx context.Context, write func(context.Context) error) error {
	term := e.termOf(ctx)
	if term == nil && e.terms.Load() == 1 {
		term = e.Term()
	}
	if term == nil {
		return lostWith(ctx, write(ctx))
	}
	ctx, cancel := term.Context(ctx)
	defer cancel()
	return term.endedBy(write(ctx))
}

// lostWith is the error of a write that belongs to no term, with the loss of one as
// its reason where the context ended with that: client-go itself says no more than
// that the context was cancelled.
func lostWith(ctx context.Context, err error) error {
	var lost *LostError
	if !errors.Is(err, context.Canceled) || errors.As(err, &lost) || !errors.As(context.Cause(ctx), &lost) {
		return err
	}
	return fmt.Errorf("%w: %w", lost, err)
}

// termClient makes the writes of a client belong to terms.
type termClient struct {
	client.Client

	election *Election
}

func (c *termClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.Create(ctx, obj, opts...) })
}

func (c *termClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.Update(ctx, obj, opts...) })
}

func (c *termClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

func (c *termClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.Apply(ctx, obj, opts...) })
}

func (c *termClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.Delete(ctx, obj, opts...) })
}

func (c *termClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.Client.DeleteAllOf(ctx, obj, opts...) })
}

func (c *termClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *termClient) SubResource(subresource string) client.SubResourceClient {
	return &termSubresource{SubResourceClient: c.Client.SubResource(subresource), election: c.election}
}

// termSubresource makes the writes of subresources belong to terms.
type termSubresource struct {
	client.SubResourceClient

	election *Election
}

func (c *termSubresource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

func (c *termSubresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

func (c *termSubresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (c *termSubresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.election.within(ctx, func(ctx context.Context) error { return c.SubResourceClient.Apply(ctx, obj, opts...) })
}
