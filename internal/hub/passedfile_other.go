//go:build !unix

package hub

import "os"

// An passedOutput is a client's output that another process lent us, which this system does not know.
type passedOutput struct{}

// canPassFiles says whether a shim can lend its client's input and output here.
const canPassFiles = false

func newPassedOutput(*os.File) *passedOutput { return &passedOutput{} }

func (*passedOutput) Write([]byte) (int, error) { return 0, errNoFilePassing }

func (*passedOutput) cancelWrite() {}

func (*passedOutput) close() error { return nil }

// An passedInput is a client's input that another process lent us, which this system does not know.
type passedInput struct{}

func newPassedInput(*os.File) *passedInput { return &passedInput{} }

func (*passedInput) Read([]byte) (int, error) { return 0, errNoFilePassing }

func (*passedInput) cancelRead() {}

func (*passedInput) close() error { return nil }
