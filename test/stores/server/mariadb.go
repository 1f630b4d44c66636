package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
)

// mariadbUsers has two: one with all rights, and one whom read_only stops.
const mariadbUsers = `FLUSH PRIVILEGES;
CREATE USER test@'%';
GRANT ALL ON *.* TO test@'%';
CREATE USER plain@'%';
GRANT SELECT, INSERT, UPDATE ON test.* TO plain@'%';
`

// MariaDB starts one, with an empty database.
func MariaDB(ctx context.Context) (*Server, error) {
	s, err := prepare(ctx, "mariadb")
	if err != nil {
		return nil, err
	}
	data, users := filepath.Join(s.Dir, "data"), filepath.Join(s.Dir, "users.sql")
	common := []string{"--datadir=" + data, "--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M"}
	if err = os.WriteFile(users, []byte(mariadbUsers), 0o644); err == nil {
		err = s.run(ctx, "mariadb-install-db", append([]string{"--no-defaults", "--skip-name-resolve", "--auth-root-authentication-method=normal", "--extra-file=" + users}, common...)...)
	}
	if err == nil {
		err = s.start(ctx, "mysql", MariaDBDSN(s.Address()), "mariadbd", append([]string{"--no-defaults", "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.Port),
			"--socket=" + filepath.Join(s.Dir, "socket"), "--pid-file=" + filepath.Join(s.Dir, "server-id"), "--skip-name-resolve", "--max-connections=200"}, common...)...)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// MariaDBDSN is for the driver mysql: the server at an address, which may be a proxy's,
// with found rows counted, as fencing needs it.
func MariaDBDSN(address string) string {
	return fmt.Sprintf("test@tcp(%s)/test?clientFoundRows=true", address)
}
