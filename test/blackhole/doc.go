// Package blackhole tests what becomes of writes while the webhooks are a black hole,
// one that takes connections and never answers: those that need no webhook take no
// longer than without any, and those that need one fail in time and say which. The
// figures are the better the less else the machine has to do.
package blackhole
