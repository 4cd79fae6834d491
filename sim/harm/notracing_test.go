//go:build !race

package harm_test

const racing = false
