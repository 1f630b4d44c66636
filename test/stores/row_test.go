package stores

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
)

// accounts is the table of most tests.
func (d *database) accounts(order sqlfence.Order) sqlfence.Table {
	return sqlfence.Table{Name: "account", Key: d.sql("id = $1"), Order: order}
}

const (
	setBalance      = `UPDATE account SET balance = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $4`
	setBalanceNewer = `UPDATE account SET balance = $1, fencing_token = $2 WHERE id = $3 AND fencing_token < $4`
)

// write is one fenced write of account 99 in a transaction of its own, without retries.
func (d *database) write(ctx context.Context, store *sqlfence.Store, order sqlfence.Order, token fence.Token, balance int64) error {
	statement := setBalance
	if order == sqlfence.StrictlyNewer {
		statement = setBalanceNewer
	}
	return sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(token), MaxTerms: 1}.Run(ctx,
		func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
			return store.Update(ctx, tx, d.accounts(order).Row(99), token, d.sql(statement), balance, token, 99, token)
		})
}

// The mark decides which tokens a row admits.
func TestRowFence(t *testing.T) {
	tests := map[string]struct {
		order     sqlfence.Order
		mark      int64
		balance   int64 // stored beforehand; 7 is written
		token     fence.Token
		wantStale bool
	}{
		"a newer token":           {mark: 4, token: 5},
		"the first":               {mark: 0, token: 1},
		"the same term once more": {mark: 5, token: 5},
		"the same term writes the same once more": {mark: 5, token: 5, balance: 7},
		"an older token":                           {mark: 6, token: 5, wantStale: true},
		"the largest token":                        {mark: 6, token: fence.MaxToken},
		"older than the largest":                   {mark: int64(fence.MaxToken), token: 5, wantStale: true},
		"strictly newer: a newer token":            {order: sqlfence.StrictlyNewer, mark: 4, token: 5},
		"strictly newer: the same term once more":  {order: sqlfence.StrictlyNewer, mark: 5, token: 5, wantStale: true},
		"strictly newer: an older token":           {order: sqlfence.StrictlyNewer, mark: 6, token: 5, wantStale: true},
		"strictly newer: newer, with equal values": {order: sqlfence.StrictlyNewer, mark: 4, token: 5, balance: 7},
	}
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				d.exec(t, db, `DELETE FROM account`)
				if _, err := db.ExecContext(t.Context(), d.sql(`INSERT INTO account VALUES (99, $1, $2)`), tc.balance, tc.mark); err != nil {
					t.Fatal(err)
				}
				err := d.write(t.Context(), store, tc.order, tc.token, 7)
				wantBalance, wantMark := int64(7), int64(tc.token)
				if tc.wantStale {
					wantBalance, wantMark = tc.balance, tc.mark
					stale := (*sqlfence.StaleError)(nil)
					if !errors.As(err, &stale) || stale.Token != tc.token || int64(stale.Mark) != tc.mark || stale.Resource != "account(99)" {
						t.Errorf("the write returned %v", err)
					}
				} else if err != nil {
					t.Errorf("the write returned %v", err)
				}
				balance, mark := number(t, db, `SELECT balance FROM account`), number(t, db, `SELECT fencing_token FROM account`)
				if balance != wantBalance || mark != wantMark {
					t.Errorf("stored are balance %d and mark %d, want %d and %d", balance, mark, wantBalance, wantMark)
				}
			})
		}
	})
}

// What can be wrong with a schema, a row, a token or a statement gets an error that says
// so, and nothing is changed.
func TestRowFenceOnWhatIsWrong(t *testing.T) {
	const create = `CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fencing_token BIGINT)`
	tests := map[string]struct {
		create    string // the table; by default, with a token that may be NULL
		row       string
		token     fence.Token
		update    string
		want      error
		wantWords string
	}{
		"a NULL token":  {row: "(99, 1, NULL)", token: 5, want: sqlfence.ErrNullToken, wantWords: "NOT NULL DEFAULT 0"},
		"a missing row": {row: "(98, 1, 0)", token: 5, want: sqlfence.ErrNotFound, wantWords: "account(99)"},
		"token 2^63-1":  {row: "(99, 1, 0)", token: math.MaxInt64, want: fence.ErrToken, wantWords: "9223372036854775807"},
		"token 0":       {row: "(99, 1, 0)", token: 0, want: fence.ErrToken},
		"token -1":      {row: "(99, 1, 0)", token: -1, want: fence.ErrToken},
		"mark 2^63-1":   {row: "(99, 1, 9223372036854775807)", token: 5, want: sqlfence.ErrMark, wantWords: "9223372036854775807"},
		"a smaller token column": {
			create: strings.Replace(create, "fencing_token BIGINT", "fencing_token SMALLINT", 1),
			row:    "(99, 1, 4)", token: 40000, want: sqlfence.ErrRange, wantWords: "must be BIGINT",
		},
		"an INTEGER token column": {
			create: strings.Replace(create, "fencing_token BIGINT", "fencing_token INTEGER", 1),
			row:    "(99, 1, 4)", token: 1 << 31, want: sqlfence.ErrRange, wantWords: "must be BIGINT",
		},
		"another condition that does not hold": {
			row: "(99, 1, 4)", token: 5, update: setBalance + ` AND balance > 100`, want: sqlfence.ErrNotUpdated,
		},
		"a statement that does not store the token": {
			row: "(99, 1, 4)", token: 5, update: `UPDATE account SET balance = $1 + 0 * $2 WHERE id = $3 AND fencing_token <= $4`,
			want: sqlfence.ErrStatement, wantWords: "left 4",
		},
		"a statement that updates two rows": {
			row: "(99, 1, 4), (100, 1, 4)", token: 5, update: `UPDATE account SET balance = $1, fencing_token = $2 WHERE id >= $3 AND fencing_token <= $4`,
			want: sqlfence.ErrStatement, wantWords: "2 rows",
		},
	}
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		db.SetMaxIdleConns(0) // none remembers a table that was another
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				if tc.create == "" {
					tc.create = create
				}
				if tc.update == "" {
					tc.update = setBalance
				}
				d.exec(t, db, `DROP TABLE account`, tc.create, `INSERT INTO account VALUES `+tc.row)
				before := number(t, db, `SELECT sum(balance) FROM account`)
				runs := 0
				err := sqlfence.Runner{Store: store, Leadership: sqlfence.LeadershipFunc(func(context.Context, fence.Token) (fence.Token, error) {
					return 1, nil
				})}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
					runs++
					return store.Update(ctx, tx, d.accounts(sqlfence.NotOlder).Row(99), tc.token, d.sql(tc.update), 7, tc.token, 99, tc.token)
				})
				if !errors.Is(err, tc.want) || errors.Is(err, sqlfence.ErrStale) || !strings.Contains(err.Error(), tc.wantWords) {
					t.Errorf("it returned %v", err)
				}
				if after := number(t, db, `SELECT sum(balance) FROM account`); after != before || runs != 1 {
					t.Errorf("balances were %d and are %d, after %d runs", before, after, runs)
				}
			})
		}
	})
}

// The statement is the caller's own: it may end as it likes.
func TestRowFenceLeavesTheStatementAlone(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		d.exec(t, db, `INSERT INTO account VALUES (99, 0, 0)`)
		for token, end := range []string{1: "", 2: ";", 3: " ;\n", 4: " -- of account 99", 5: "\n/* of account 99 */ "} {
			if token == 0 {
				continue
			}
			err := sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(fence.Token(token))}.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, fencing fence.Token) error {
				return store.Update(ctx, tx, d.accounts(sqlfence.NotOlder).Row(99), fencing, d.sql(setBalance+end), 7, fencing, 99, fencing)
			})
			if err != nil {
				t.Errorf("with %q in the end: %v", end, err)
			}
		}
	})
}
