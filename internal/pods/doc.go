// Package pods is to come.
package pods
