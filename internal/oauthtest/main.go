package oauthtest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: idp serve [-options JSON] [-knobs JSON] [-dir DIR]
       idp wait FILE                       until it is there
       idp visit URL | idp follow URL      as a browser would; follow stops at the callback and prints it
       idp turn BASE JSON                  turns knobs
       idp counts|sessions|knobs BASE      prints them as JSON
       idp requests BASE [ENDPOINT...]     the same
       idp expire|revoke|forget|rotate BASE
       idp approve|deny BASE USER-CODE
BASE is the URL of the issuer or of the MCP server. @FILE is the first URL in a file.
`

var errUsage = errors.New("unknown command or wrong arguments")

// Main executes one command and returns the exit code. The command "serve" runs a provider until ctx ends or the
// process is interrupted, and prints the URL of the MCP server. With -dir DIR, it writes three files to DIR: resource
// and issuer (one URL each), and mcp.json, a configuration with the server "protected". The other commands control a
// running provider.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err := command(ctx, args[0], args[1:], stdout); err != nil {
		fmt.Fprintln(stderr, "idp:", err)
		if errors.Is(err, errUsage) {
			fmt.Fprint(stderr, usage)
			return 2
		}
		return 1
	}
	return 0
}

func command(ctx context.Context, name string, args []string, stdout io.Writer) error {
	if name == "serve" {
		return serve(ctx, args, stdout)
	}
	if len(args) == 0 {
		return errUsage
	}
	if name == "wait" {
		return waitFor(ctx, args[0])
	}
	at, err := urlOf(args[0])
	if err != nil {
		return err
	}
	rest := args[1:]
	switch {
	case name == "visit":
		return browser{http.DefaultClient}.visit(ctx, at)
	case name == "follow":
		callback, err := browser{http.DefaultClient}.follow(ctx, at)
		fmt.Fprintln(stdout, callback)
		return err
	case name == "turn" && len(rest) == 1:
		return ask(ctx, http.MethodPost, at, "knobs", nil, rest[0], stdout)
	case name == "approve" && len(rest) == 1, name == "deny" && len(rest) == 1:
		return ask(ctx, http.MethodPost, at, name, url.Values{"code": rest}, "", stdout)
	case name == "requests":
		return ask(ctx, http.MethodGet, at, name, url.Values{"of": rest}, "", stdout)
	case name == "counts" || name == "sessions" || name == "knobs":
		return ask(ctx, http.MethodGet, at, name, nil, "", stdout)
	case name == "expire" || name == "revoke" || name == "forget" || name == "rotate":
		return ask(ctx, http.MethodPost, at, name, nil, "", stdout)
	}
	return errUsage
}

func serve(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	options, knobs, dir := flags.String("options", "", ""), flags.String("knobs", "", ""), flags.String("dir", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var o Options
	if err := decode([]byte(*options), &o); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	if err := decode([]byte(*knobs), &o.Knobs); err != nil {
		return fmt.Errorf("knobs: %w", err)
	}
	p, err := Start(o)
	if err != nil {
		return err
	}
	defer p.Close()
	if *dir != "" {
		row := map[string]any{"mcpServers": map[string]any{"protected": map[string]any{"type": "http",
			"url": p.ResourceURL}}}
		text, err := json.Marshal(row)
		err = errors.Join(err, write(*dir, "mcp.json", string(text)), write(*dir, "issuer", p.Issuer),
			write(*dir, "resource", p.ResourceURL))
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, p.ResourceURL)
	<-ctx.Done()
	return nil
}

// write creates a file with its full content in one step, so that a reader never sees a part of it.
func write(dir, name, text string) error {
	part := filepath.Join(dir, "."+name+".part")
	if err := os.WriteFile(part, []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, name))
}

// waitFor waits until a file exists, at most 30 seconds.
func waitFor(ctx context.Context, path string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return fmt.Errorf("wait: %s did not come", path)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// urlOf returns the URL in an argument. For "@FILE", it returns the first sign-in URL in the file, or the first URL if
// there is no sign-in URL.
func urlOf(arg string) (string, error) {
	path, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	all := regexp.MustCompile(`https?://[^\s"'<>]+`).FindAllString(string(text), -1)
	for _, u := range all {
		if strings.Contains(u, "response_type=") || strings.Contains(u, "user_code=") {
			return u, nil
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("there is no URL in %s", path)
	}
	return all[0], nil
}

// ask sends a control request to the provider at base, and prints the response.
func ask(ctx context.Context, method, base, what string, query url.Values, body string, stdout io.Writer) error {
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	u.Path, u.RawQuery = "/idp/"+what, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", what, response.Status, text)
	case len(text) > 0:
		fmt.Fprintf(stdout, "%s\n", text)
	}
	return nil
}

// Variable is the environment variable that makes Run execute Main.
const Variable = "MCPTEST_IDP"

// Run must be called at the beginning of a TestMain, next to mcptest.RunIfServer. If Variable is set, Run executes Main
// with the arguments of the process, and exits. Otherwise it does nothing.
func Run() {
	if os.Getenv(Variable) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
}
