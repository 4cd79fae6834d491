//go:build race

package library_test

const racing = true
