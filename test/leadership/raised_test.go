package leadership

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// raises is how often the token is raised under a leader.
const raises = 25

// TestRaisedToken: spec.minToken is raised under a healthy leader that writes all
// the time. Its term goes on with the new token, and no write is refused: one that
// was on its way just then is sent again, with the new token.
func TestRaisedToken(t *testing.T) {
	t.Parallel()
	w := fenced(t)
	guarded(w, account)
	first := stand(w, w.Pod("first"))
	client := first.typed()
	held := first.lead(1)

	var enough atomic.Bool
	done := make(chan struct{})
	written := 0
	go func() {
		defer close(done)
		for !enough.Load() {
			balance := strconv.Itoa(written)
			if err := pay(held.ctx, client, w.Namespace, balance); err != nil {
				t.Errorf("write %d was refused: %v; the term says %v", written, err, held.Err())
				return
			}
			written++
		}
	}()
	token := fence.Token(1)
	for n := range raises {
		token += fence.Token(n + 10)
		w.ChangeFencedLease(leaseName, func(fl *v1alpha1.FencedLease) { fl.Spec.MinToken = int64(token) })
		w.Eventually("the term has token "+token.String(), func() error {
			select {
			case <-held.Done():
				t.Fatalf("the term was lost: %v", held.Err())
			default:
			}
			return differ(held.Token(), token)
		})
	}
	time.Sleep(retryPeriod) // a last write with the last token
	enough.Store(true)
	<-done
	held.lives(t)
	stands(w, strconv.Itoa(written-1), token.String())
	t.Logf("the token was raised %d times under %d writes", raises, written)
}

// differ is an error if two values differ.
func differ[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("it is %v, want %v", got, want)
	}
	return nil
}
