package stores

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
)

// begin begins a transaction that ends with the test at the latest.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// fenced is a transaction that does nothing but to pass the fence.
func fenced(ctx context.Context, db *sql.DB, store *sqlfence.Store, resource string, token fence.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := store.Fence(ctx, tx, resource, token); err != nil {
		return err
	}
	return tx.Commit()
}

// The mark of a resource rises, and refuses smaller tokens.
func TestResourceFence(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		steps := []struct {
			resource string
			token    fence.Token
			wantMark fence.Token // of a refusal
		}{
			{"payments", 5, 0},
			{"payments", 5, 0}, // the same term again
			{"payments", 4, 5},
			{"payments", 7, 0},
			{"payments", 6, 7},
			{"payments", fence.MaxToken, 0},
			{"payments", 8, fence.MaxToken},
			// Names are bytes: none of these is another's.
			{"Payments", 1, 0},
			{"payments ", 1, 0},
			{"päyments", 1, 0},
			{"payments", 1, fence.MaxToken},
			{strings.Repeat("x", 255), 2, 0},
			{strings.Repeat("x", 255), 1, 2},
			{strings.Repeat("x", 254), 1, 0},
		}
		for _, step := range steps {
			err := fenced(t.Context(), db, store, step.resource, step.token)
			if step.wantMark == fence.None {
				if err != nil {
					t.Errorf("%q with token %s: %v", step.resource, step.token, err)
				}
				continue
			}
			if stale := (*sqlfence.StaleError)(nil); !errors.As(err, &stale) || stale.Mark != step.wantMark || stale.Token != step.token || !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%q with token %s: %v", step.resource, step.token, err)
			}
		}
	})
}

// What is no token, and no name, does not reach the database.
func TestResourceFenceOnWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		resource string
		token    fence.Token
		want     string
	}{
		"token 2^63-1":   {"payments", math.MaxInt64, "9223372036854775807: a fencing token is"},
		"token 2^53":     {"payments", fence.MaxToken + 1, "a fencing token is"},
		"no token":       {"payments", fence.None, "a fencing token is"},
		"no name":        {"", 1, "1 to 255 bytes"},
		"a long name":    {strings.Repeat("x", 256), 1, "256 bytes: the name of a resource has 1 to 255 bytes"},
		"no UTF-8":       {"\xff", 1, "UTF-8"},
		"a NUL in there": {"a\x00b", 1, "UTF-8 without NUL"},
	}
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				if err := fenced(t.Context(), db, store, tc.resource, tc.token); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("it returned %v", err)
				}
			})
		}
		if n := number(t, db, `SELECT count(*) FROM fencing_marks`); n != 1 {
			t.Errorf("there are %d marks", n)
		}
	})
}

// A transaction holds its resource until it ends, and not longer.
func TestResourceFenceIsHeld(t *testing.T) {
	tests := map[string]struct {
		before    bool // the resource has a mark already
		end       func(*sql.Tx) error
		wantStale bool
	}{
		"committed, the first ever":   {false, (*sql.Tx).Commit, true},
		"committed":                   {true, (*sql.Tx).Commit, true},
		"rolled back, the first ever": {false, (*sql.Tx).Rollback, false},
		"rolled back":                 {true, (*sql.Tx).Rollback, false},
	}
	each(t, func(t *testing.T, d *database) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				db, store := d.store(t)
				if tc.before {
					if err := fenced(t.Context(), db, store, "payments", 1); err != nil {
						t.Fatal(err)
					}
				}
				tx := begin(t, db)
				if err := store.Fence(t.Context(), tx, "payments", 7); err != nil {
					t.Fatal(err)
				}
				older := make(chan error, 1)
				go func() { older <- fenced(t.Context(), db, store, "payments", 6) }()
				select {
				case err := <-older:
					t.Fatalf("an older token did not wait, and got %v", err)
				case <-time.After(100 * time.Millisecond):
				}
				if err := fenced(t.Context(), db, store, "another", 6); err != nil {
					t.Errorf("another resource: %v", err)
				}
				if err := tc.end(tx); err != nil {
					t.Fatal(err)
				}
				if err := <-older; errors.Is(err, sqlfence.ErrStale) != tc.wantStale || err != nil && !tc.wantStale {
					t.Errorf("afterwards the older token got %v", err)
				}
			})
		}
	})
}

// Of many transactions that are the first on a resource, each is admitted or stale.
func TestFirstWritesRace(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for _, isolation := range d.isolation {
			t.Run(isolation.String(), func(t *testing.T) {
				db, store := d.store(t)
				var wait sync.WaitGroup
				errs := make([]error, writers)
				for i := range errs {
					wait.Go(func() {
						errs[i] = sqlfence.Runner{
							Store: store, Leadership: sqlfence.Fixed(fence.Token(i + 1)), Resource: "new", MaxRetries: 100,
							Options: &sql.TxOptions{Isolation: isolation},
						}.Run(t.Context(), func(context.Context, *sql.Tx, fence.Token) error { return nil })
					})
				}
				wait.Wait()
				for i, err := range errs {
					if err != nil && !errors.Is(err, sqlfence.ErrStale) || err != nil && i == writers-1 {
						t.Errorf("token %d got %v", i+1, err)
					}
				}
				if mark := number(t, db, `SELECT token FROM fencing_marks WHERE resource = 'new'`); mark != writers {
					t.Errorf("the mark is %d", mark)
				}
			})
		}
	})
}
