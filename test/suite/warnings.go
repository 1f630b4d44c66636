package suite

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Warnings are those that the API server's answers had for an actor.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

var _ rest.WarningHandlerWithContext = (*Warnings)(nil)

// HandleWarningHeaderWithContext is called for each warning of an answer.
func (w *Warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 {
		w.texts = append(w.texts, text)
	}
}

// Take returns the warnings since the last call.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := slices.Clone(w.texts)
	w.texts = nil
	return texts
}

// Want checks that there was exactly one warning since the last look, with all
// the parts; that there was none, if no part is given.
func (w *Warnings) Want(t *testing.T, parts ...string) {
	t.Helper()
	texts := w.Take()
	if len(parts) == 0 {
		if len(texts) > 0 {
			t.Errorf("unexpected warnings: %q", texts)
		}
		return
	}
	if len(texts) != 1 {
		t.Errorf("%d warnings, want 1 with %q: %q", len(texts), parts, texts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(texts[0], part) {
			t.Errorf("the warning lacks %q: %s", part, texts[0])
		}
	}
}

// Warned is the actor with a record of the warnings that it gets.
func (a *Actor) Warned() (*Actor, *Warnings) {
	a.world.T.Helper()
	warnings := &Warnings{}
	config := rest.CopyConfig(a.Config)
	config.WarningHandlerWithContext = warnings
	return a.world.Actor(a.Name, config), warnings
}
