package stores

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/leader"
	"github.com/fencedlease/fencedlease/store/httpfence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
	"github.com/fencedlease/fencedlease/test/cluster"
)

// What follows stands in docs/stores.md, word for word.

var accounts = sqlfence.Table{Name: "account", Key: "id = $1"}

func deposit(ctx context.Context, store *sqlfence.Store, leadership sqlfence.Leadership, id, amount int64) error {
	runner := sqlfence.Runner{Store: store, Leadership: leadership}
	return runner.Run(ctx, func(ctx context.Context, tx *sql.Tx, token fence.Token) error {
		var balance int64
		if err := tx.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = $1 FOR UPDATE`, id).Scan(&balance); err != nil {
			return err
		}
		return store.Update(ctx, tx, accounts.Row(id), token,
			`UPDATE account SET balance = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2`,
			balance+amount, token, id)
	})
}

func open(ctx context.Context, dsn string) (*sqlfence.Store, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	if err := sqlfence.Migrate(ctx, db, sqlfence.PostgreSQL); err != nil {
		return nil, err
	}
	return sqlfence.Open(ctx, db, sqlfence.PostgreSQL)
}

func transfer(ctx context.Context, store *sqlfence.Store, leadership sqlfence.Leadership, from, to, amount int64) error {
	runner := sqlfence.Runner{Store: store, Leadership: leadership, Resource: "ledger"}
	return runner.Run(ctx, func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
		if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance - $1 WHERE id = $2`, amount, from); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance + $1 WHERE id = $2`, amount, to)
		return err
	})
}

// follow is for a program that competes in the background, with election.Run: after it was
// superseded it leads again some time, and its transactions wait for that.
func follow(election *leader.Election) sqlfence.Leadership {
	return sqlfence.Follow(func() fence.Token {
		if term := election.Term(); term != nil {
			return term.Token()
		}
		return fence.None
	})
}

// within is for the work of one term: a stale token is the end of it.
func within(term *leader.Term) sqlfence.Leadership { return sqlfence.Fixed(term.Token()) }

// given is for a command of kubectl fence run.
func given() (sqlfence.Leadership, error) {
	token, err := fence.ParseToken(os.Getenv("FENCING_TOKEN"))
	return sqlfence.Fixed(token), err
}

func service(store *sqlfence.Store) http.Handler {
	guard := httpfence.Guard{
		Marks:    httpfence.SQL{Store: store},
		Resource: func(*http.Request) string { return "ledger" }, // by default, the path of the URL
	}
	return guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// In the transaction that holds the mark: both are committed, or neither.
		_, err := httpfence.Tx(r.Context()).ExecContext(r.Context(), `UPDATE account SET balance = balance + 1 WHERE id = 99`)
		if err != nil {
			http.Error(w, "the deposit failed", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}

func client(term *leader.Term) *http.Client {
	return &http.Client{Transport: &httpfence.Transport{Source: httpfence.OfTerm(term)}}
}

// And here it ends.

var (
	blockPattern = regexp.MustCompile("(?s)<!-- TestPage/([a-z-]+) -->\n```([a-z]+)\n(.*?)```\n")
	startPattern = regexp.MustCompile("(?m)^```[a-z]+$")
)

// page are the blocks of docs/stores.md, by the names of their tests. Those in Go are
// also in this file.
func page(t *testing.T) map[string]string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "stores.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "test", "stores", "page_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, match := range blockPattern.FindAllStringSubmatch(string(text), -1) {
		name, language, block := match[1], match[2], match[3]
		blocks[name] = block
		if language == "go" && !bytes.Contains(source, []byte("\n"+block+"\n")) {
			t.Errorf("the block %s is not in page_test.go", name)
		}
	}
	if all := len(startPattern.FindAllString(string(text), -1)); all != len(blocks) {
		t.Errorf("%d blocks, %d of them with a test", all, len(blocks))
	}
	return blocks
}

// story is a database with two accounts, one of them without money.
func story(t *testing.T) (*sql.DB, *sqlfence.Store) {
	t.Helper()
	db, store := postgresql.store(t)
	postgresql.exec(t, db, `INSERT INTO account VALUES (98, 100, 0), (99, 0, 0)`)
	return db, store
}

// wantBalance sees what is in account 99.
func wantBalance(t *testing.T, db *sql.DB, want int64) {
	t.Helper()
	if got := number(t, db, `SELECT balance FROM account WHERE id = 99`); got != want {
		t.Errorf("the balance is %d, want %d", got, want)
	}
}

// TestPage runs every block of docs/stores.md.
func TestPage(t *testing.T) {
	blocks := page(t)
	tests := map[string]func(t *testing.T){
		"column": func(t *testing.T) {
			for _, d := range databases {
				db := d.open(t)
				db.SetMaxOpenConns(1)
				d.exec(t, db, `CREATE TEMPORARY TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)`,
					`INSERT INTO account VALUES (99, 100)`, blocks["column"])
				if mark := number(t, db, `SELECT fencing_token FROM account`); mark != 0 {
					t.Errorf("the mark is %d", mark)
				}
			}
		},
		"open": func(t *testing.T) {
			db := postgresql.open(t)
			postgresql.exec(t, db, `DROP TABLE IF EXISTS fencing_marks`)
			store, err := open(t.Context(), postgresql.dsn(postgresql.server.Address()))
			if err != nil {
				t.Fatal(err)
			}
			if err := fenced(t.Context(), db, store, "ledger", 1); err != nil {
				t.Error(err)
			}
		},
		"row": func(t *testing.T) {
			db, store := story(t)
			if err := deposit(t.Context(), store, sqlfence.Fixed(7), 99, 5); err != nil {
				t.Error(err)
			}
			if err := deposit(t.Context(), store, sqlfence.Fixed(6), 98, 1); err != nil {
				t.Errorf("another row: %v", err)
			}
			if err := deposit(t.Context(), store, sqlfence.Fixed(6), 99, 5); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("an older one returned %v", err)
			}
			wantBalance(t, db, 5)
		},
		"resource": func(t *testing.T) {
			db, store := story(t)
			if err := transfer(t.Context(), store, sqlfence.Fixed(7), 98, 99, 5); err != nil {
				t.Error(err)
			}
			if err := transfer(t.Context(), store, sqlfence.Fixed(6), 98, 99, 5); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("an older one returned %v", err)
			}
			wantBalance(t, db, 5)
		},
		"leadership": func(t *testing.T) {
			_, store := story(t)
			t.Setenv("FENCING_TOKEN", "7")
			leadership, err := given()
			if err != nil {
				t.Fatal(err)
			}
			if err := deposit(t.Context(), store, leadership, 99, 5); err != nil {
				t.Error(err)
			}
			// Nobody leads here: that they wait for somebody is all that there is to see.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := deposit(ctx, store, follow(&leader.Election{}), 99, 5); !errors.Is(err, context.Canceled) {
				t.Errorf("it returned %v", err)
			}
			if err := deposit(t.Context(), store, within(&leader.Term{}), 99, 5); err == nil {
				t.Error("a term that has no token wrote")
			}
		},
		"script": func(t *testing.T) { testScript(t, blocks) },
		"settle": func(t *testing.T) { testScript(t, blocks) },
		"service": func(t *testing.T) {
			db, store := story(t)
			s := httptest.NewServer(service(store))
			defer s.Close()
			for _, step := range []struct {
				token    fence.Token
				wantCode int
			}{{7, 204}, {7, 204}, {6, 412}, {8, 204}, {7, 412}} {
				if code, problem, err := put(t.Context(), s.URL+"/accounts/99", step.token); err != nil || code != step.wantCode {
					t.Errorf("token %s got %d %v, %v", step.token, code, problem, err)
				}
			}
			wantBalance(t, db, 3)
		},
		"client": func(t *testing.T) {
			transport, ok := client(&leader.Term{}).Transport.(*httpfence.Transport)
			if !ok || transport.Source == nil {
				t.Errorf("the transport is %v", transport)
			}
		},
		"curl": func(t *testing.T) {
			db, store := story(t)
			s := httptest.NewServer(service(store))
			defer s.Close()
			curl := func(token string) (string, error) {
				return shell(t, t.TempDir(), blocks["curl"], "FENCING_TOKEN="+token, "SERVICE="+s.URL)
			}
			if out, err := curl("7"); err != nil {
				t.Errorf("it returned %v\n%s", err, out)
			}
			if out, err := curl("6"); err == nil || !strings.Contains(out, `"markToken":7`) {
				t.Errorf("an older one returned %v\n%s", err, out)
			}
			wantBalance(t, db, 1)
		},
		"problem": func(t *testing.T) {
			_, store := story(t)
			handler := service(store)
			var w *httptest.ResponseRecorder
			for _, token := range []string{"7", "6"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/accounts/99", nil)
				r.Header.Set(httpfence.Header, token)
				w = httptest.NewRecorder()
				handler.ServeHTTP(w, r)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, w.Body.Bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(blocks["problem"], got.String()+"\n"); diff != "" {
				t.Error(diff)
			}
		},
	}
	for name := range blocks {
		if tests[name] == nil {
			t.Errorf("the block %s has no test", name)
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if blocks[name] == "" {
				t.Fatal("the page has no such block")
			}
			test(t)
		})
	}
}

// shell runs a block in a directory, with these variables.
func shell(t *testing.T, dir, block string, env ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-ec", block)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// testScript runs settle.sh in three terms.
func testScript(t *testing.T, blocks map[string]string) {
	t.Helper()
	db, _ := story(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "settle.sql"), []byte(blocks["settle"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ token, wantStatus int }{{7, 0}, {7, 0}, {6, 3}, {8, 0}, {7, 3}} {
		out, err := shell(t, dir, blocks["script"], fmt.Sprintf("FENCING_TOKEN=%d", step.token), "DATABASE="+postgresql.dsn(postgresql.server.Address()))
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if status != step.wantStatus {
			t.Errorf("with token %d it ended with %d, want %d\n%s", step.token, status, step.wantStatus, out)
		}
	}
	wantBalance(t, db, 3)
}
