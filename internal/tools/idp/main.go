// Command idp is the tests' identity provider, to try a sign-in by hand: go run ./internal/mcptest/cmd/idp serve.
package main

import (
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

func main() { os.Exit(oauthtest.Main(os.Args[1:], os.Stdout, os.Stderr)) }
