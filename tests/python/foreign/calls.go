// Calls floed by grpc-go: calls ADDRESS METHOD REQUEST REPLY COUNT. Debian's golang-google-grpc-dev.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type raw struct{}

func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string   { return "proto" }
func (raw) String() string { return "proto" }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, method := os.Args[1], os.Args[2]
	request, err := os.ReadFile(os.Args[3])
	must(err)
	expected, err := os.ReadFile(os.Args[4])
	must(err)
	count, err := strconv.Atoi(os.Args[5])
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	channel, err := grpc.DialContext(ctx, address, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(1<<28)))
	must(err)

	var callers sync.WaitGroup
	for caller := 0; caller < 32; caller++ {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for i := 0; i < count/32; i++ {
				var reply []byte
				must(channel.Invoke(ctx, method, &request, &reply))
				if !bytes.Equal(reply, expected) {
					must(fmt.Errorf("another reply of %d bytes", len(reply)))
				}
			}
		}()
	}
	callers.Wait()

	var reply []byte
	if code := status.Code(channel.Invoke(ctx, "/no.Such/Method", &request, &reply)); code != codes.Unimplemented {
		must(fmt.Errorf("an unknown method gives %v", code))
	}
	past, end := context.WithTimeout(ctx, time.Microsecond)
	defer end()
	if code := status.Code(channel.Invoke(past, method, &request, &reply)); code != codes.DeadlineExceeded {
		must(fmt.Errorf("a deadline that passed gives %v", code))
	}
	watch, leave := context.WithCancel(ctx)
	stream, err := channel.NewStream(watch, &grpc.StreamDesc{ServerStreams: true}, "/grpc.health.v1.Health/Watch")
	must(err)
	empty := []byte{}
	must(stream.SendMsg(&empty))
	must(stream.CloseSend())
	must(stream.RecvMsg(&reply))
	leave()
	if code := status.Code(stream.RecvMsg(&reply)); code != codes.Canceled {
		must(fmt.Errorf("a stream that was left gives %v", code))
	}
}
