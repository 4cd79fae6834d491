// Command postgres is to come.
package main

func main() {}
