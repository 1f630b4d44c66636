package stores

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
)

// tokens is a leadership that hands out these, one with each call.
func tokens(hands ...fence.Token) sqlfence.Leadership {
	return sqlfence.LeadershipFunc(func(_ context.Context, _ fence.Token) (fence.Token, error) {
		if len(hands) == 0 {
			return fence.None, errors.New("somebody else leads")
		}
		token := hands[0]
		hands = hands[1:]
		return token, nil
	})
}

// depositing adds to account 99 what it has read, in a transaction that its resource fences.
func depositing(d *database, amount int64, tried *[]fence.Token) sqlfence.Work {
	return func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
		*tried = append(*tried, token)
		var balance int64
		if err := tx.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = 99`).Scan(&balance); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, d.sql(`UPDATE account SET balance = $1 WHERE id = 99`), balance+amount)
		return err
	}
}

// A stale transaction is rolled back, and run anew only with a newer token.
func TestRunnerLeadsAgain(t *testing.T) {
	hands := func(hands ...fence.Token) func() sqlfence.Leadership {
		return func() sqlfence.Leadership { return tokens(hands...) }
	}
	tests := map[string]struct {
		leadership func() sqlfence.Leadership
		maxTerms   int
		wantTried  []fence.Token // by the work, whose mark is 7 beforehand
		wantStale  bool
		wantWords  string
	}{
		"not stale at all":               {leadership: hands(7), wantTried: []fence.Token{7}},
		"stale, and leads again":         {leadership: hands(6, 8), wantTried: []fence.Token{8}},
		"stale twice, and leads again":   {leadership: hands(5, 6, 8), wantTried: []fence.Token{8}},
		"stale, and has one token only":  {leadership: func() sqlfence.Leadership { return sqlfence.Fixed(6) }, wantStale: true, wantWords: "one token only"},
		"stale, and somebody else leads": {leadership: hands(6), wantStale: true, wantWords: "somebody else leads"},
		"stale, and the same token":      {leadership: hands(6, 6, 8), wantStale: true, wantWords: "was stale already"},
		"stale, and an older token":      {leadership: hands(6, 5, 8), wantStale: true, wantWords: "was stale already"},
		"stale, and a limit":             {leadership: hands(4, 5, 8), maxTerms: 2, wantStale: true, wantWords: "token 5 is stale"},
		"never led":                      {leadership: hands(), wantWords: "somebody else leads"},
		"no token":                       {leadership: hands(1 << 60), wantWords: "a fencing token is"},
	}
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				d.exec(t, db, `DELETE FROM account`, `INSERT INTO account VALUES (99, 100, 0)`, `DELETE FROM fencing_marks WHERE resource <> ''`)
				if err := fenced(t.Context(), db, store, "payments", 7); err != nil {
					t.Fatal(err)
				}
				var tried []fence.Token
				err := sqlfence.Runner{Store: store, Leadership: tc.leadership(), Resource: "payments", MaxTerms: tc.maxTerms}.
					Run(t.Context(), depositing(d, 5, &tried))
				if errors.Is(err, sqlfence.ErrStale) != tc.wantStale || err == nil && tc.wantWords != "" || err != nil && (tc.wantWords == "" || !strings.Contains(err.Error(), tc.wantWords)) {
					t.Errorf("it returned %v", err)
				}
				if len(tried) != len(tc.wantTried) || len(tried) > 0 && tried[0] != tc.wantTried[0] {
					t.Errorf("the work had the tokens %v, want %v", tried, tc.wantTried)
				}
				if balance := number(t, db, `SELECT balance FROM account`); balance != 100+5*int64(len(tc.wantTried)) {
					t.Errorf("the balance is %d", balance)
				}
			})
		}
	})
}

// A stale row at the end of a long transaction takes everything before it back, and the
// new term reads anew.
func TestRunnerRollsBackTheWhole(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		d.exec(t, db, `INSERT INTO account VALUES (1, 100, 0), (99, 100, 7)`)
		var read []int64
		err := sqlfence.Runner{Store: store, Leadership: tokens(6, 8)}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
			var balance int64
			if err := tx.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = 99`).Scan(&balance); err != nil {
				return err
			}
			read = append(read, balance)
			if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance - 10 WHERE id = 1`); err != nil {
				return err
			}
			if token == 6 { // the new leader is at work meanwhile
				if err := d.write(ctx, store, sqlfence.NotOlder, 7, 500); err != nil {
					return err
				}
			}
			return store.Update(ctx, tx, d.accounts(sqlfence.NotOlder).Row(99), token, d.sql(setBalance), balance+10, token, 99, token)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(read) != 2 || read[0] != 100 || read[1] != 500 {
			t.Errorf("it read %v", read)
		}
		if from, to := number(t, db, `SELECT balance FROM account WHERE id = 1`), number(t, db, `SELECT balance FROM account WHERE id = 99`); from != 90 || to != 510 {
			t.Errorf("the balances are %d and %d", from, to)
		}
	})
}

// crossing are two transactions that lock two rows in opposite orders, and wait for each
// other once. The returned counts say how often each was run.
func crossing(t *testing.T, d *database, store *sqlfence.Store, retries int, swallow bool) (runs [2]int, errs [2]error) {
	t.Helper()
	var both, wait sync.WaitGroup
	both.Add(2)
	for i := range 2 {
		wait.Go(func() {
			errs[i] = sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), MaxRetries: retries}.Run(t.Context(),
				func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
					runs[i]++
					if _, err := tx.ExecContext(ctx, d.sql(`UPDATE account SET balance = balance + 1 WHERE id = $1`), 1+i); err != nil {
						return err
					}
					if runs[i] == 1 {
						both.Done()
						both.Wait()
					}
					_, err := tx.ExecContext(ctx, d.sql(`UPDATE account SET balance = balance + 1 WHERE id = $1`), 2-i)
					if err != nil && swallow {
						_, _ = tx.ExecContext(ctx, `UPDATE account SET balance = balance + 1000 WHERE id = 3`)
						return nil
					}
					return err
				})
		})
	}
	wait.Wait()
	return runs, errs
}

// The victim of a deadlock runs again, with the same token.
func TestRunnerRetriesDeadlocks(t *testing.T) {
	tests := map[string]struct {
		retries  int
		wantRuns int
		wantErrs int
		want     int64 // the balance of each row
	}{
		"by default": {0, 3, 0, 2},
		"never":      {-1, 2, 1, 1},
	}
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				d.exec(t, db, `DELETE FROM account`, `INSERT INTO account VALUES (1, 0, 0), (2, 0, 0)`)
				runs, errs := crossing(t, d, store, tc.retries, false)
				failed := 0
				for _, err := range errs {
					if err != nil {
						failed++
						if !strings.Contains(strings.ToLower(err.Error()), "deadlock") {
							t.Errorf("it returned %v", err)
						}
					}
				}
				if runs[0]+runs[1] != tc.wantRuns || failed != tc.wantErrs {
					t.Errorf("they ran %v times, and returned %v", runs, errs)
				}
				if got := number(t, db, `SELECT min(balance) FROM account`); got != tc.want {
					t.Errorf("the balance is %d, want %d", got, tc.want)
				}
			})
		}
	})
}

// Work that passes over an error is not committed by halves: not its first half, which the
// database has rolled back, and not what it did afterwards.
func TestRunnerOnErrorsThatAreSwallowed(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		t.Run("a deadlock", func(t *testing.T) {
			db, store := d.store(t)
			d.exec(t, db, `INSERT INTO account VALUES (1, 0, 0), (2, 0, 0), (3, 0, 0)`)
			_, errs := crossing(t, d, store, 0, true)
			if err := errors.Join(errs[0], errs[1]); !errors.Is(err, sqlfence.ErrAborted) || errs[0] != nil && errs[1] != nil {
				t.Errorf("it returned %v", errs)
			}
			for account, want := range map[string]int64{"1": 1, "2": 1, "3": 0} {
				if got := number(t, db, `SELECT balance FROM account WHERE id = `+account); got != want {
					t.Errorf("the balance of account %s is %d, want %d", account, got, want)
				}
			}
		})
		t.Run("a statement that fails", func(t *testing.T) {
			db, store := d.store(t)
			d.exec(t, db, `INSERT INTO account VALUES (1, 0, 0)`)
			err := sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7)}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
				_, _ = tx.ExecContext(ctx, `INSERT INTO account VALUES (1, 0, 0)`) // a duplicate
				return store.Fence(ctx, tx, "payments", token)
			})
			// MySQL undoes the statement alone, and the transaction goes on.
			if d == postgresql && !errors.Is(err, sqlfence.ErrAborted) || d == mariadb && err != nil {
				t.Errorf("it returned %v", err)
			}
		})
		t.Run("a statement that fails, before the commit", func(t *testing.T) {
			_, store := d.store(t)
			err := sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), Resource: "payments"}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
				_, _ = tx.ExecContext(ctx, `SELECT no_such_function()`)
				return nil
			})
			if d == postgresql && (!errors.Is(err, sqlfence.ErrAborted) || errors.Is(err, sqlfence.ErrCommitUnknown)) || d == mariadb && err != nil {
				t.Errorf("it returned %v", err)
			}
		})
	})
}

// A connection that somebody gave back to the pool in the middle of a transaction, and in a
// failed one, does no harm to the next.
func TestRunnerOnALeftTransaction(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		db.SetMaxOpenConns(1)
		d.exec(t, db, `INSERT INTO account VALUES (99, 100, 0)`)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{`BEGIN`, `UPDATE account SET fencing_token = 3`, `SELECT no_such_function()`} {
			_, err = conn.ExecContext(t.Context(), statement)
		}
		if err == nil {
			t.Fatal("the transaction has not failed")
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		var tried []fence.Token
		if err := (sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), Resource: "payments"}).Run(t.Context(), depositing(d, 5, &tried)); err != nil {
			t.Errorf("it returned %v", err)
		}
		if balance := number(t, db, `SELECT balance FROM account`); balance != 105 {
			t.Errorf("the balance is %d", balance)
		}
	})
}

// A panic of the work rolls back, and gives the connection back.
func TestRunnerOnAPanic(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		d.exec(t, db, `INSERT INTO account VALUES (99, 100, 0)`)
		func() {
			defer func() { _ = recover() }()
			_ = sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), Resource: "payments"}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
				if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = 0`); err != nil {
					return err
				}
				panic("in the middle")
			})
			t.Error("it did not panic")
		}()
		if balance := number(t, db, `SELECT balance FROM account`); balance != 100 || db.Stats().InUse != 0 {
			t.Errorf("the balance is %d, and %d connections are in use", balance, db.Stats().InUse)
		}
		if err := fenced(t.Context(), db, store, "payments", 1); err != nil {
			t.Errorf("the mark was raised: %v", err)
		}
	})
}

// Nothing is committed after the context has ended.
func TestRunnerEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		d.exec(t, db, `INSERT INTO account VALUES (99, 100, 0)`)
		over := errors.New("the term is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), Resource: "payments"}.Run(ctx, func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
			_, err := tx.ExecContext(ctx, `UPDATE account SET balance = 0`)
			cancel(over)
			return err
		})
		if !errors.Is(err, over) {
			t.Errorf("it returned %v", err)
		}
		if balance := number(t, db, `SELECT balance FROM account`); balance != 100 {
			t.Errorf("the balance is %d", balance)
		}
		// And nothing waits for leadership.
		err = sqlfence.Runner{Store: store, Leadership: sqlfence.Follow(func() fence.Token { return fence.None })}.Run(ctx, nil)
		if !errors.Is(err, over) {
			t.Errorf("without leadership it returned %v", err)
		}
	})
}
