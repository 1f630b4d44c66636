// Package server runs real databases for tests: PostgreSQL and MariaDB, each a child of
// this process on a free port of the loopback interface, with its data in a temporary
// directory. Nothing of them is left after Stop, nor after a process that was killed,
// but its files.
//
// Their programs come from the distribution's packages; `make postgresql mariadb` installs
// them. They take no durability upon themselves (fsync off): a test may kill connections,
// not the machine.
package server
