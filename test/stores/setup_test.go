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
	"github.com/fencedlease/fencedlease/test/stores/server"
)

// A database that is not fit for fencing is refused when it is opened, with what to do.
func TestOpen(t *testing.T) {
	tests := map[string]struct {
		on      []*database
		prepare string // run before
		dsn     string // to be appended
		want    string // of the error
	}{
		"fit":                    {on: databases},
		"not migrated":           {on: databases, prepare: `DROP TABLE fencing_marks`, want: "there is no table fencing_marks: run Migrate"},
		"migrated by halves":     {on: databases, prepare: `DELETE FROM fencing_marks`, want: "lacks its row without a name: run Migrate"},
		"changed rows counted":   {on: []*database{mariadb}, dsn: "&clientFoundRows=false", want: "set clientFoundRows=true in the DSN"},
		"not strict":             {on: []*database{mariadb}, dsn: "&sql_mode=''", want: "add STRICT_TRANS_TABLES"},
		"strict, another way":    {on: []*database{mariadb}, dsn: "&sql_mode='STRICT_ALL_TABLES'"},
		"prepared on the client": {on: []*database{mariadb}, dsn: "&interpolateParams=true"},
	}
	for name, tc := range tests {
		for _, d := range tc.on {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				db, _ := d.store(t)
				if tc.prepare != "" {
					d.exec(t, db, tc.prepare)
				}
				dsn := d.dsn(d.server.Address()) + tc.dsn
				if tc.dsn == "&clientFoundRows=false" {
					dsn = strings.Replace(d.dsn(d.server.Address()), "clientFoundRows=true", "", 1)
				}
				store, err := sqlfence.Open(t.Context(), d.connect(t, dsn), d.dialect)
				if tc.want == "" {
					if err != nil || store == nil {
						t.Errorf("it returned %v, %v", store, err)
					}
					return
				}
				if store != nil || !errors.Is(err, sqlfence.ErrSetup) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("it returned %v, %v", store, err)
				}
			})
		}
	}
}

// Programs that start at the same time may all migrate, and again later.
func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		d.exec(t, db, `DROP TABLE fencing_marks`)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if err := sqlfence.Migrate(t.Context(), db, d.dialect); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if err := fenced(t.Context(), db, store, "payments", 7); err != nil {
			t.Fatal(err)
		}
		if err := sqlfence.Migrate(t.Context(), db, d.dialect); err != nil {
			t.Fatal(err)
		}
		if err := fenced(t.Context(), db, store, "payments", 6); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("after another migration the mark says %v", err)
		}
	})
}

// The table itself refuses what is no mark, whoever writes it.
func TestMarksAreTokens(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, _ := d.store(t)
		for _, mark := range []any{-1, int64(1 << 53), int64(math.MaxInt64), nil} {
			if _, err := db.ExecContext(t.Context(), d.sql(`INSERT INTO fencing_marks VALUES ('x', $1)`), mark); err == nil {
				t.Errorf("mark %v was stored", mark)
			}
		}
	})
}

// readOnly is what every way to write says where nothing can be written.
func (d *database) readOnly(t *testing.T, store *sqlfence.Store, options *sql.TxOptions) {
	t.Helper()
	runner := sqlfence.Runner{Store: store, Leadership: sqlfence.Fixed(7), Options: options}
	if err := runner.Run(t.Context(), func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
		return store.Update(ctx, tx, d.accounts(sqlfence.NotOlder).Row(99), token, d.sql(setBalance), 1, token, 99, token)
	}); !errors.Is(err, sqlfence.ErrReadOnly) {
		t.Errorf("the row fence returned %v", err)
	}
	runner.Resource = "payments"
	if err := runner.Run(t.Context(), func(context.Context, *sql.Tx, fence.Token) error {
		t.Error("the work was run")
		return nil
	}); !errors.Is(err, sqlfence.ErrReadOnly) {
		t.Errorf("the resource fence returned %v", err)
	}
}

func TestReadOnlyTransaction(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		_, store := d.store(t)
		d.readOnly(t, store, &sql.TxOptions{ReadOnly: true})
	})
}

// A replica can be no store.
func TestReplica(t *testing.T) {
	d := postgresql
	d.store(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	replica, err := server.Replica(ctx, d.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := sqlfence.Open(t.Context(), d.connect(t, d.dsn(replica.Address())), d.dialect); !errors.Is(err, sqlfence.ErrReadOnly) {
		t.Errorf("opened, it says %v", err)
	}
}

// A primary that becomes a replica refuses what it admitted before. A replica of MariaDB
// is one by read_only, which holds for all but administrators.
func TestPrimaryThatIsDemoted(t *testing.T) {
	d := mariadb
	admin, _ := d.store(t)
	db := d.connect(t, strings.Replace(d.dsn(d.server.Address()), "test@", "plain@", 1))
	store, err := sqlfence.Open(t.Context(), db, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	if err := fenced(t.Context(), db, store, "payments", 7); err != nil {
		t.Fatal(err)
	}
	d.exec(t, admin, `SET GLOBAL read_only = 1`)
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), `SET GLOBAL read_only = 0`); err != nil {
			t.Error(err)
		}
	})
	d.readOnly(t, store, nil)
	if _, err := sqlfence.Open(t.Context(), db, d.dialect); !errors.Is(err, sqlfence.ErrReadOnly) {
		t.Errorf("opened, it says %v", err)
	}
}
