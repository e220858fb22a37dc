// The program that test/kits_test.mjs directs (test/kits/README.md), as an example of a handler.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	var options struct {
		Type, Concurrency any
		Types             []string
		Worker            struct {
			ID                                  string
			Timeout, CheckInterval, PollTimeout time.Duration
		}
	}
	if err := json.Unmarshal([]byte(os.Args[2]), &options); err != nil {
		panic(err)
	}
	settings := options.Worker
	or := func(given, standard time.Duration) time.Duration {
		if given == 0 {
			given = standard
		}
		return given * time.Millisecond
	}
	slots := 1
	if n, ok := options.Concurrency.(float64); ok {
		slots = int(n)
	}
	role := options.Type.(string)
	if options.Types == nil {
		options.Types = []string{role}
	}
	if settings.ID == "" {
		settings.ID = fmt.Sprintf("go-%d", os.Getpid())
	}
	proceed := make(chan struct{})
	worker := &Worker{
		URL: os.Args[1], Role: role, ID: settings.ID, Types: options.Types, Concurrency: slots,
		Timeout: or(settings.Timeout, 15_000), Check: or(settings.CheckInterval, 1_000), Poll: or(settings.PollTimeout, 30_000),
	}
	worker.Handle = func(job *Job) (any, error) {
		var data struct{ Do string }
		json.Unmarshal(job.Data, &data)
		go func() {
			<-job.Aborted
			fmt.Println("aborted", job.ID, job.Reason)
		}()
		fmt.Println("ran", job.ID)
		switch data.Do {
		case "throw":
			return nil, errors.New("no luck")
		case "hold":
			select {
			case <-proceed:
			case <-job.Aborted:
				return nil, ErrAborted
			}
		case "stubborn":
			<-proceed
		}
		return object{"by": worker.ID, "epoch": job.Epoch}, nil
	}
	worker.On = func(event string, job *Job, err error) {
		switch {
		case event == "fail":
			fmt.Println(event, job.ID, err)
		case job != nil:
			fmt.Println(event, job.ID)
		default:
			fmt.Println(event)
		}
	}
	go func() {
		var once sync.Once
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			command, argument, _ := strings.Cut(lines.Text(), " ")
			switch command {
			case "go":
				once.Do(func() { close(proceed) })
			case "stop":
				limit, _ := strconv.Atoi(argument)
				fmt.Println("stopping")
				go worker.Stop(time.Duration(limit) * time.Millisecond)
			}
		}
	}()
	var refused *Error
	if err := worker.Run(); errors.As(err, &refused) {
		fmt.Println("error DivanError", refused.Status, refused.Code)
	} else {
		fmt.Println("stopped")
	}
}
