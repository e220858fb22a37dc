// The parts of Boost.Asio that the server uses, with the io_context's own executor: a type-erased one costs a
// microsecond a request. Only *.cc files of this module include this, directly or through loop.h.
#pragma once

// GCC's thread sanitizer does not support the fences that Asio puts around handlers. The locks of its queues,
// which order the same accesses, are supported.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

namespace divan::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using SteadyTime = std::chrono::steady_clock::time_point;

/// A connected socket without TLS. socket.h has that of connections.
using PlainSocket = asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace divan::http
