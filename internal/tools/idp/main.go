// Command idp runs the identity provider of the tests, to try a sign-in by hand: go run ./internal/tools/idp serve.
package main

import (
	"context"
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

func main() { os.Exit(oauthtest.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }
