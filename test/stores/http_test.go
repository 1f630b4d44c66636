package stores

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/httpfence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
	"github.com/fencedlease/fencedlease/test/stores/server"
)

// serve serves a handler behind a guard with marks in the store.
func serve(t *testing.T, store *sqlfence.Store, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(httpfence.Guard{Marks: httpfence.SQL{Store: store}}.Wrap(handler))
	t.Cleanup(s.Close)
	return s
}

// put sends a request with a token, and returns the answer's code and problem.
func put(ctx context.Context, url string, token fence.Token) (code int, problem *httpfence.Problem, err error) {
	client := http.Client{Transport: &httpfence.Transport{Source: func(context.Context) (fence.Token, error) { return token, nil }}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	problem = httpfence.ProblemOf(response)
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, problem, err
}

// The mark and the handler's work are committed together, or not at all.
func TestHandlerInTheTransactionOfItsMark(t *testing.T) {
	set := func(r *http.Request, balance int64) error {
		_, err := httpfence.Tx(r.Context()).ExecContext(r.Context(), fmt.Sprintf(`UPDATE account SET balance = %d WHERE id = 99`, balance))
		return err
	}
	tests := map[string]struct {
		token       fence.Token
		handler     func(t *testing.T, w http.ResponseWriter, r *http.Request)
		wantCode    int
		wantBalance int64
		wantMark    int64
	}{
		"the work succeeds": {
			token: 8, wantCode: 200, wantBalance: 1, wantMark: 8,
			handler: func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
				if err := set(r, 1); err != nil {
					t.Error(err)
				}
			},
		},
		"the handler answers with an error": {
			token: 8, wantCode: 404, wantBalance: 100, wantMark: 7,
			handler: func(t *testing.T, w http.ResponseWriter, r *http.Request) {
				if err := set(r, 1); err != nil {
					t.Error(err)
				}
				http.NotFound(w, r)
			},
		},
		"the token is stale": {
			token: 6, wantCode: 412, wantBalance: 100, wantMark: 7,
			handler: func(t *testing.T, _ http.ResponseWriter, _ *http.Request) { t.Error("the handler was called") },
		},
		"the handler ends the transaction itself": {
			token: 8, wantCode: 500, wantBalance: 100, wantMark: 7,
			handler: func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
				if err := set(r, 1); err != nil {
					t.Error(err)
				}
				_ = httpfence.Tx(r.Context()).Rollback()
			},
		},
	}
	each(t, func(t *testing.T, d *database) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				db, store := d.store(t)
				d.exec(t, db, `INSERT INTO account VALUES (99, 100, 0)`)
				if err := fenced(t.Context(), db, store, "/accounts/99", 7); err != nil {
					t.Fatal(err)
				}
				service := serve(t, store, func(w http.ResponseWriter, r *http.Request) { tc.handler(t, w, r) })
				code, problem, err := put(t.Context(), service.URL+"/accounts/99", tc.token)
				if err != nil || code != tc.wantCode {
					t.Errorf("the answer is %d %v, %v", code, problem, err)
				}
				if code == http.StatusPreconditionFailed && (problem == nil || problem.MarkToken != 7 || problem.Resource != "/accounts/99") {
					t.Errorf("the problem is %+v", problem)
				}
				balance, mark := number(t, db, `SELECT balance FROM account`), number(t, db, `SELECT token FROM fencing_marks WHERE resource = '/accounts/99'`)
				if balance != tc.wantBalance || mark != tc.wantMark {
					t.Errorf("the balance is %d, and the mark %d", balance, mark)
				}
			})
		}
	})
}

// A name that the table cannot take is the client's mistake.
func TestResourceThatIsTooLong(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		_, store := d.store(t)
		service := serve(t, store, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
		code, problem, err := put(t.Context(), service.URL+"/"+strings.Repeat("x", 255), 7)
		if err != nil || code != http.StatusUnprocessableEntity || problem == nil || !strings.Contains(problem.Detail, "1 to 255 bytes") {
			t.Errorf("the answer is %d %v, %v", code, problem, err)
		}
	})
}

// A client is not told of a success that is not stored, nor that nothing was done where
// that is not known.
func TestServiceThatLosesItsDatabase(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, _ := d.store(t)
		proxy, err := server.NewProxy(t.Context(), d.server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		proxy.Commits = 1
		store, err := sqlfence.Open(t.Context(), d.connect(t, d.dsn(proxy.Address())), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		service := serve(t, store, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := httpfence.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO account VALUES (99, 100, 0)`); err != nil {
				t.Error(err)
			}
		})
		code, problem, err := put(t.Context(), service.URL+"/accounts/99", 7)
		if err != nil || code != http.StatusInternalServerError || problem == nil || !strings.Contains(problem.Detail, "not known") {
			t.Errorf("the answer is %d %v, %v", code, problem, err)
		}
		// Whether or not, the service is as it was.
		number(t, db, `SELECT count(*) FROM account`)
	})
}

// Many clients with random tokens, as in [TestContention], with the fence in the service.
func TestContentionOverHTTP(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		db, store := d.store(t)
		c := &contention{d: d, db: db, store: store, isolation: sql.LevelDefault, outcomes: map[string]outcome{}, errs: map[string]error{}}
		d.exec(t, db, `INSERT INTO account VALUES (0, 0, 0)`)
		service := serve(t, store, func(w http.ResponseWriter, r *http.Request) {
			tx := httpfence.Tx(r.Context())
			var balance int64
			err := tx.QueryRowContext(r.Context(), `SELECT balance FROM account`).Scan(&balance)
			if err == nil {
				_, err = tx.ExecContext(r.Context(), d.sql(`UPDATE account SET balance = $1`), balance+1)
			}
			if err == nil {
				_, err = tx.ExecContext(r.Context(), d.sql(`INSERT INTO journal (resource, seq, token, writer) VALUES ($1, $2, $3, $4)`),
					"account-0", balance+1, httpfence.Token(r.Context()), r.URL.Query().Get("name"))
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		var wait sync.WaitGroup
		for writer := range writers {
			wait.Go(func() {
				for i := range 20 {
					name := fmt.Sprintf("%d-%d", writer, i)
					code, problem, err := put(t.Context(), service.URL+"/account?name="+name, fence.Token(10+c.begun.Add(1)/20-rand.Int64N(10)))
					result := map[int]outcome{200: accepted, 412: stale}[code]
					if result == 0 {
						t.Errorf("the answer is %d %v, %v", code, problem, err)
					}
					c.mu.Lock()
					c.outcomes[name] = result
					c.mu.Unlock()
				}
			})
		}
		wait.Wait()
		if counts := c.verify(t); counts[accepted] == 0 || counts[stale] == 0 {
			t.Errorf("the outcomes are %v", counts)
		}
	})
}
