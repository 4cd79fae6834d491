// Package stackedtest puts client libraries that retry by themselves above a guard: the AWS SDK, resty,
// go-retryablehttp and go-redis.
package stackedtest
