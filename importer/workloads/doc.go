// Package workloads reads what runs: Kubernetes Services and workloads (Deployment, StatefulSet, DaemonSet, Rollout)
// and compose files. It yields services with their names, replicas and aliases, and the calls that addresses in
// environment variables show.
//
// An address in an environment variable is a good guess, not a proof: such a call has its place, and PerRequest is
// assumed.
package workloads
