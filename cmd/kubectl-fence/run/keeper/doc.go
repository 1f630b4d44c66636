// Package keeper runs a command that must end with a term, whatever becomes of the
// program that holds the term, and however far the command's processes run away.
//
// There are two processes of ours, each a guard for the other:
//
//   - The owner holds the term, and tells the keeper until when it lasts: each
//     time that it is proven anew.
//   - The keeper, this program run again, is the parent of the command, in a process
//     group of its own so that no signal to the owner's group reaches it.
//
// All processes of the command are killed
//
//   - by the keeper, when the owner says so; when the owner is gone (the socket
//     between them closes), killed for instance; and when the deadline passes that
//     the owner gave last, because the owner hangs, is stopped, or is cut off from
//     the API server. The deadline is an instant on a clock that both read, so it
//     does not matter how long a message about it was on the way, and where the
//     system has one, that clock goes on while the machine sleeps;
//   - by the owner, when the keeper is gone, or does not do as it is told;
//   - the command itself, by the kernel, when both go at once (Linux).
//
// SIGKILL goes to the process group first, which gets all of its members at once.
// What has left the group (setsid, or forking twice) is found on Linux, where
// orphans come to the keeper as their subreaper, and so remain its descendants:
// /proc is walked until the keeper has no child left. Elsewhere only the group is
// killed.
//
// A pause of all at once, of the machine for example, is nothing that a process
// could notice while it lasts. The keeper kills as soon as it runs again, and the
// guard refuses what the command may write until then.
package keeper
