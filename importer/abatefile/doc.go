// Package abatefile reads our own policy files as an audit reads those of others: each service is a policy of whoever
// has the file, each entry of protect is a service.
package abatefile
