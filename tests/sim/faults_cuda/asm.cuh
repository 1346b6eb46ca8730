// The PTX that CUDA C has no word for, for the kernels beside.
#pragma once
#include <cstdint>

__device__ inline uint32_t shared_address(const void* place) { return static_cast<uint32_t>(__cvta_generic_to_shared(place)); }

__device__ inline void named_barrier(int number, int threads) { asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }

__device__ inline void cp_async_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int open>
__device__ inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory"); }

__device__ inline void init(uint64_t* object, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(object)), "r"(arrivals) : "memory"); }
__device__ inline void arrive(uint64_t* object) { asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(shared_address(object)) : "memory"); }
__device__ inline void arrive_expecting(uint64_t* object, int bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(shared_address(object)), "r"(bytes) : "memory");
}
__device__ inline bool has_completed(uint64_t* object, int parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(shared_address(object)), "r"(parity) : "memory");
  return done != 0;
}
// Gives up in the end, so that a fault does not keep the GPU.
__device__ inline void wait(uint64_t* object, int parity) {
  for (int n = 0; !has_completed(object, parity); ++n)
    if (n == 1 << 20) asm volatile("trap;");
}
__device__ inline void bulk_load(void* to, const void* from, int bytes, uint64_t* object) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(object)) : "memory");
}
__device__ inline void bulk_store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
}
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int open>
__device__ inline void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(open) : "memory"); }
__device__ inline void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
