package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// asks says whether there is a person who can be asked: somebody who sees standard error and types on standard input.
func (a *app) asks() bool {
	in, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && isTerminal(a.Err)
}

// agrees asks a yes-or-no question. Whatever is not a clear yes is a no, and so is the end of ctx.
func (a *app) agrees(ctx context.Context, question string) bool {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answers := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is a no
		answers <- line
	})
	select {
	case answer := <-answers:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return true
		}
	case <-ctx.Done(): // a terminal that is read cannot be interrupted: the program ends with somebody in it
		fmt.Fprintln(a.Err)
	}
	return false
}
