// Package spring reads configurations of Spring Boot: the instances of resilience4j, the routes of Spring Cloud
// Gateway, and the time limits of OpenFeign, from YAML and from properties files.
//
// A key may be written maxAttempts or max-attempts. Documents of a profile lie over those without: which profiles are
// active is told as the version of "spring.profiles", "prod,eu" for example; without that it is production, where there
// is such a profile.
package spring
