package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
)

// PostgreSQL starts one, with an empty database.
func PostgreSQL(ctx context.Context) (*Server, error) {
	return postgresql(ctx, "postgresql", func(s *Server, data string) error {
		return s.run(ctx, "initdb", "--pgdata="+data, "--username=test", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	})
}

// Replica starts a hot standby of a PostgreSQL, which can be read only.
func Replica(ctx context.Context, primary *Server) (*Server, error) {
	return postgresql(ctx, "replica", func(s *Server, data string) error {
		return s.run(ctx, "pg_basebackup", "--pgdata="+data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
			"--host=127.0.0.1", "--port="+strconv.Itoa(primary.Port), "--username=test")
	})
}

func postgresql(ctx context.Context, name string, fill func(s *Server, data string) error) (*Server, error) {
	s, err := prepare(ctx, name)
	if err != nil {
		return nil, err
	}
	s.stop = syscall.SIGINT // "fast": SIGTERM waits for the clients
	data := filepath.Join(s.Dir, "data")
	if err = fill(s, data); err == nil {
		err = s.start(ctx, "pgx", PostgreSQLDSN(s.Address()), "postgres",
			"-D", data, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "fsync=off", "-c", "max_connections=100", "-c", "shared_buffers=32MB", "-c", "deadlock_timeout=100ms")
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// PostgreSQLDSN is for the driver pgx: the server at an address, which may be a proxy's.
func PostgreSQLDSN(address string) string {
	return fmt.Sprintf("postgres://test@%s/postgres?sslmode=disable", address)
}
