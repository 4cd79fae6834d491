// Package bench measures abate and its peers side by side, in one process, one
// after the other, in the same run. Times differ from machine to machine and
// from hour to hour; ratios inside one run differ far less, so ratios are what
// the project promises (see bench/targets).
//
// Every benchmark is called Benchmark<Group>/<dimension>/impl=<name>/mode=<seq|par>,
// so that benchstat can put the implementations next to each other:
//
//	benchstat -table .name -col /impl out.txt
//
// There is one file per group, holding every implementation of that group. The
// peers are used through their public functions only, each in its cheapest
// documented form. impl=floor, where present, is the same work without any
// library: what is left of a row after subtracting it is the library's own cost.
//
// Names: impl=abate is the public way in (abate.Do or abatehttp), impl=abate-policy
// is one policy package driven by hand, clock reads included.
package bench
