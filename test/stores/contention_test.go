package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
	"github.com/fencedlease/fencedlease/test/stores/server"
)

const (
	// writers write at the same time.
	writers = 16

	// contended is how many accounts they share.
	contended = 4

	// writesVariable says how many writes there are on each database; by default
	// defaultWrites.
	writesVariable = "FENCEDLEASE_STORE_WRITES"
	defaultWrites  = 5000
)

// outcome is what a writer was told.
type outcome int

const (
	accepted outcome = iota + 1
	stale
	unknown // whether it was committed
	failed  // and not committed, for sure
)

// contention is one battle for the accounts of a database.
type contention struct {
	d         *database
	db        *sql.DB // of the test itself
	store     *sqlfence.Store
	isolation sql.IsolationLevel
	byRow     bool // the row fence, else the resource fence

	begun    atomic.Int64
	mu       sync.Mutex
	outcomes map[string]outcome // by the writes' names
	errs     map[string]error
}

// transaction is one write: it counts the account up, and leaves the number, the token
// and its name in the journal. Whoever gets into the journal out of order has written
// late.
func (c *contention) transaction(account int64, name string) sqlfence.Work {
	resource := fmt.Sprintf("account-%d", account)
	return func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
		var balance int64
		read := func() error {
			return tx.QueryRowContext(ctx, c.d.sql(`SELECT balance FROM account WHERE id = $1`), account).Scan(&balance)
		}
		if c.byRow {
			err := c.store.Update(ctx, tx, c.d.accounts(sqlfence.NotOlder).Row(account), token,
				c.d.sql(`UPDATE account SET balance = balance + 1, fencing_token = $1 WHERE id = $2 AND fencing_token <= $3`), token, account, token)
			if err == nil {
				err = read()
			}
			if err != nil {
				return err
			}
		} else {
			// Read, think, write: safe only because the fence is held to the end.
			if err := c.store.Fence(ctx, tx, resource, token); err != nil {
				return err
			}
			if err := read(); err != nil {
				return err
			}
			balance++
			if _, err := tx.ExecContext(ctx, c.d.sql(`UPDATE account SET balance = $1 WHERE id = $2`), balance, account); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, c.d.sql(`INSERT INTO journal (resource, seq, token, writer) VALUES ($1, $2, $3, $4)`), resource, balance, token, name)
		return err
	}
}

// write does one write with a token that is new, or old, or very old.
func (c *contention) write(ctx context.Context, name string) {
	newest := 10 + c.begun.Add(1)/20
	token := fence.Token(newest - rand.Int64N(10))
	err := sqlfence.Runner{
		Store: c.store, Leadership: sqlfence.Fixed(token), MaxTerms: 1, MaxRetries: 1000,
		Options: &sql.TxOptions{Isolation: c.isolation},
	}.Run(ctx, c.transaction(rand.Int64N(contended), name))

	result := failed
	switch {
	case err == nil:
		result = accepted
	case errors.Is(err, sqlfence.ErrStale):
		result = stale
	case errors.Is(err, sqlfence.ErrCommitUnknown):
		result = unknown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[name] = result
	if result == failed {
		c.errs[err.Error()] = err
	}
}

// fight lets all writers write, and watches the marks meanwhile.
func (c *contention) fight(t *testing.T, writes int) {
	t.Helper()
	for account := range contended {
		if _, err := c.db.ExecContext(t.Context(), c.d.sql(`INSERT INTO account VALUES ($1, 0, 0)`), account); err != nil {
			t.Fatal(err)
		}
	}
	var wait, watch sync.WaitGroup
	for writer := range writers {
		wait.Go(func() {
			for i := range writes / writers {
				c.write(t.Context(), fmt.Sprintf("%d-%d", writer, i))
			}
		})
	}
	over := make(chan struct{})
	watch.Go(func() { c.watch(t, over) })
	wait.Wait()
	close(over)
	watch.Wait()
}

// marks are the marks of the accounts, whichever fence there is.
func (c *contention) marks(ctx context.Context) (map[string]int64, error) {
	query := `SELECT resource, token FROM fencing_marks WHERE resource <> ''`
	if c.byRow {
		query = `SELECT id, fencing_token FROM account`
	}
	rows, err := c.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	marks := map[string]int64{}
	for rows.Next() {
		var resource string
		var mark int64
		if err := rows.Scan(&resource, &mark); err != nil {
			return nil, err
		}
		marks[resource] = mark
	}
	return marks, rows.Err()
}

// watch sees that no mark falls.
func (c *contention) watch(t *testing.T, over <-chan struct{}) {
	last := map[string]int64{}
	for {
		marks, err := c.marks(t.Context())
		if err != nil {
			t.Errorf("the marks cannot be read: %v", err)
			return
		}
		for resource, mark := range last {
			if marks[resource] < mark {
				t.Errorf("the mark of %s fell from %d to %d", resource, mark, marks[resource])
			}
		}
		last = marks
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// entry is one committed write.
type entry struct {
	resource, name string
	seq, token     int64
}

// journal is what was committed, and the sum of the balances at the same moment: a commit
// whose answer was lost may still be on its way.
func (c *contention) journal(t *testing.T) (entries []entry, balances int64) {
	t.Helper()
	tx, err := c.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(t.Context(), `SELECT resource, seq, token, writer FROM journal ORDER BY resource, seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.resource, &e.seq, &e.token, &e.name); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRowContext(t.Context(), `SELECT sum(balance) FROM account`).Scan(&balances); err != nil {
		t.Fatal(err)
	}
	return entries, balances
}

// verify compares what was committed with what the writers were told.
func (c *contention) verify(t *testing.T) (counts map[outcome]int) {
	t.Helper()
	entries, balances := c.journal(t)
	committed := map[string]bool{}
	var last entry
	for _, e := range entries {
		committed[e.name] = true
		switch {
		case e.resource != last.resource && e.seq != 1, e.resource == last.resource && e.seq != last.seq+1:
			t.Errorf("%+v follows %+v: a write is lost", e, last)
		case e.resource == last.resource && e.token < last.token:
			t.Errorf("%+v follows %+v: a late write was accepted", e, last)
		}
		last = e
	}
	counts = map[outcome]int{}
	for name, result := range c.outcomes {
		counts[result]++
		if result == accepted && !committed[name] {
			t.Errorf("write %s was accepted, and is lost", name)
		}
		if (result == stale || result == failed) && committed[name] {
			t.Errorf("write %s was refused (%d), and is there", name, result)
		}
	}
	if balances != int64(len(entries)) {
		t.Errorf("the balances sum up to %d after %d writes", balances, len(entries))
	}
	return counts
}

// eachFight runs a test for each database, isolation level and fence, with its share of
// the writes. Through the address of the server, or of something in front of it.
func eachFight(t *testing.T, share int, test func(t *testing.T, c *contention, writes int)) {
	t.Helper()
	writes := defaultWrites
	if text := os.Getenv(writesVariable); text != "" {
		var err error
		if writes, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", writesVariable, err)
		}
	}
	each(t, func(t *testing.T, d *database) {
		for _, isolation := range d.isolation {
			for fences, byRow := range map[string]bool{"row fence": true, "resource fence": false} {
				t.Run(fmt.Sprintf("%s/%s", isolation, fences), func(t *testing.T) {
					db, store := d.store(t)
					db.SetMaxOpenConns(writers + 2)
					db.SetMaxIdleConns(writers + 2)
					test(t, &contention{
						d: d, db: db, store: store, isolation: isolation, byRow: byRow,
						outcomes: map[string]outcome{}, errs: map[string]error{},
					}, writes/share/(2*len(d.isolation)))
				})
			}
		}
	})
}

// Sixteen writers with random tokens: marks never fall, no late write gets in, and none
// that was accepted is lost.
func TestContention(t *testing.T) {
	eachFight(t, 1, func(t *testing.T, c *contention, writes int) {
		begin := time.Now()
		c.fight(t, writes)
		counts := c.verify(t)
		t.Logf("%d accepted and %d stale in %s", counts[accepted], counts[stale], time.Since(begin).Round(time.Millisecond))
		for _, err := range c.errs {
			t.Errorf("a write failed: %v", err)
		}
		if counts[accepted] == 0 || counts[stale] == 0 || counts[unknown] > 0 {
			t.Errorf("the outcomes are %v", counts)
		}
	})
}

// The same while connections are cut again and again, in the middle of commits and
// elsewhere: a writer that was told that its write is in finds it there, and one that was
// told that it failed does not.
func TestContentionWithConnectionLoss(t *testing.T) {
	eachFight(t, 2, func(t *testing.T, c *contention, writes int) {
		proxy, err := server.NewProxy(t.Context(), c.d.server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		proxy.Commits = 0.2
		db := c.d.connect(t, c.d.dsn(proxy.Address()))
		db.SetMaxIdleConns(writers)
		if c.store, err = sqlfence.Open(t.Context(), db, c.d.dialect); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		var cutting sync.WaitGroup
		cuts := 0
		cutting.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(rand.N(20 * time.Millisecond)):
					proxy.Cut()
					cuts++
				}
			}
		})
		c.fight(t, writes)
		close(over)
		cutting.Wait()
		counts := c.verify(t)
		t.Logf("%d cuts: %d accepted, %d stale, %d failed, %d of unknown outcome", cuts, counts[accepted], counts[stale], counts[failed], counts[unknown])
		if counts[accepted] == 0 || counts[stale] == 0 || counts[failed] == 0 || counts[unknown] == 0 {
			t.Errorf("the outcomes are %v after %d cuts", counts, cuts)
		}
	})
}
