// Command sql is to come.
package main

func main() {}
